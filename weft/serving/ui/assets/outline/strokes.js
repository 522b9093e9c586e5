// How a timeline is drawn: on the page of the runs, and in the file of `weft run --timeline`, which
// holds these functions as text. They import nothing and know their colours from `colours`.

export const isWork = (doing) => doing === "work" || doing === "failed";

export function hatch(pen, x, y, width, height, colour) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, width, height);
  pen.clip();
  pen.strokeStyle = colour;
  pen.lineWidth = 1.5;
  pen.beginPath();
  for (let at = x - height; at < x + width; at += 5) {
    pen.moveTo(at, y + height);
    pen.lineTo(at + height, y);
  }
  pen.stroke();
  pen.restore();
}

export function stroke(pen, x1, x2, y, colour, dash, width = 1.5) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.setLineDash(dash);
  pen.beginPath();
  pen.moveTo(x1, y);
  pen.lineTo(x2, y);
  pen.stroke();
  pen.setLineDash([]);
}

const stoodIn = ({ via }) => via === "default" || via === "fallback";

function block(pen, node, isFailed, x, width, top, high, colours) {
  const isCancelled = node.status === "cancelled";
  pen.fillStyle =
    colours[isFailed ? "failed" : isCancelled ? "cancelled" : stoodIn(node) ? "default" : "work"];
  pen.beginPath();
  pen.roundRect(x, top, width, high, Math.min(3, width / 2));
  pen.fill();
  if (isFailed || isCancelled) hatch(pen, x, top, width, high, colours.panel);
}

/** What a node did, as a bar `high` pixels thick. `node`: its `status` and `via`. */
export function piece(pen, node, doing, x, width, middle, high, colours) {
  const top = middle - high / 2;
  if (isWork(doing)) block(pen, node, doing === "failed", x, width, top, high, colours);
  else if (doing === "children") stroke(pen, x, x + width, middle, colours.scope, [], 3);
  else if (doing === "person") {
    pen.fillStyle = colours.person;
    pen.globalAlpha = 0.35;
    pen.fillRect(x, top, width, high);
    pen.globalAlpha = 1;
    hatch(pen, x, top, width, high, colours.person);
  } else stroke(pen, x, x + width, middle, colours.wait, doing === "slot" ? [1.5, 3.5] : [6, 4]);
}

export function cross(pen, x, y, colour) {
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  pen.beginPath();
  for (const side of [-1, 1]) {
    pen.moveTo(x - 4, y - 4 * side);
    pen.lineTo(x + 4, y + 4 * side);
  }
  pen.stroke();
}

function diamond(pen, x, y, colour) {
  pen.strokeStyle = colour;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(x - 5, y);
  pen.lineTo(x, y - 5);
  pen.lineTo(x + 5, y);
  pen.lineTo(x, y + 5);
  pen.closePath();
  pen.stroke();
}

/** The sign at the end of a node, which was at `x`, with its attempts and what stood in for it. */
export function ending(pen, node, x, beginX, width, middle, colours) {
  if (node.status === "failed") cross(pen, x + 7, middle, colours.failed);
  else if (node.status === "skipped") diamond(pen, x + 1, middle, colours.skipped);
  else if (node.status === "cancelled") stroke(pen, x + 2, x + 8, middle, colours.cancelled, [], 2);
  const notes = [];
  if (node.attempts > 1) notes.push(`${node.attempts} attempts`);
  if (node.via) notes.push(node.via);
  if (!notes.length) return;
  const words = notes.join(", ");
  const left = x + (node.status === "failed" ? 16 : 8);
  const fits = left + pen.measureText(words).width < width;
  pen.fillStyle = colours.soft;
  pen.textBaseline = "middle";
  pen.textAlign = fits ? "left" : "right";
  pen.fillText(words, fits ? left : beginX - 8, middle);
  pen.textAlign = "left";
}

/**
 * The critical path over the rows: `path` is [key, doing, from, to] in order, `where` tells the
 * middle of the row of a key and whether it is its own, or null. Returns how many steps it drew.
 */
export function drawPath(pen, path, place, where, high, colour) {
  let before = null;
  let drawn = 0;
  pen.strokeStyle = colour;
  for (const [key, doing, begin, end] of path) {
    const row = where(key);
    if (row) {
      const x = place(begin);
      const x2 = Math.max(place(end), x + 1.5);
      pen.lineWidth = 2;
      if (row.isOwn && doing === "work") {
        pen.beginPath();
        pen.roundRect(x - 1, row.middle - high / 2 - 1.5, x2 - x + 2, high + 3, 4);
        pen.stroke();
      } else stroke(pen, x, x2, row.middle + high / 2 + 2, colour, [], 2);
      if (before && before.middle !== row.middle) {
        pen.globalAlpha = 0.75;
        pen.lineWidth = 1.25;
        pen.beginPath();
        pen.moveTo(place(before.end), before.middle);
        pen.lineTo(x, row.middle);
        pen.stroke();
        pen.globalAlpha = 1;
      }
      drawn += 1;
    }
    before = row && { end, middle: row.middle };
  }
  return drawn;
}

/** What the signs mean, in as many lines as fit in `width`. `open(width, height)` gives the pen. */
export function drawLegend(measure, open, width, colours) {
  const high = 12;
  const line = 20;
  const entries = [
    ["work", (pen, x, y) => block(pen, {}, false, x, 26, y + 4, high, colours)],
    [
      "critical path",
      (pen, x, y) => {
        pen.strokeStyle = colours.path;
        pen.lineWidth = 2;
        pen.strokeRect(x + 1, y + 4, 24, high);
      },
    ],
    [
      "failed",
      (pen, x, y) => {
        block(pen, {}, true, x, 18, y + 4, high, colours);
        cross(pen, x + 25, y + 10, colours.failed);
      },
    ],
    ["stand-in", (pen, x, y) => block(pen, { via: "default" }, false, x, 26, y + 4, high, colours)],
    ["cancelled", (pen, x, y) => block(pen, { status: "cancelled" }, false, x, 26, y + 4, high, colours)],
    ["skipped", (pen, x, y) => diamond(pen, x + 18, y + 10, colours.skipped)],
    ["slot", (pen, x, y) => stroke(pen, x, x + 26, y + 10, colours.wait, [1.5, 3.5])],
    ["retry", (pen, x, y) => stroke(pen, x, x + 26, y + 10, colours.wait, [6, 4])],
    ["person", (pen, x, y) => hatch(pen, x, y + 4, 26, high, colours.person)],
  ];
  const places = [];
  let [x, y, right] = [0, 0, 0];
  for (const [label, draw] of entries) {
    const wide = 32 + measure(label);
    if (x > 0 && x + wide > width) [x, y] = [0, y + line];
    places.push([label, draw, x, y]);
    right = Math.max(right, x + wide);
    x += wide + 16;
  }
  const pen = open(right, y + line);
  for (const [label, draw, left, top] of places) {
    draw(pen, left, top);
    pen.fillStyle = colours.soft;
    pen.textBaseline = "middle";
    pen.fillText(label, left + 32, top + 10.5);
  }
}
