// Paints the rows that are in view, the time axis and the critical path.
const colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ground", "panel", "ink", "soft", "line", "row", "picked", "work", "failed",
    "skipped", "cancelled", "default", "person", "scope", "wait", "path"])
    colours[name] = style.getPropertyValue(`--${name}`).trim();
}

function surface(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  return pen;
}

const colourOf = (node, failed) =>
  failed ? colours.failed : node.status === "cancelled" ? colours.cancelled
  : node.via ? colours.default : colours.work;

function hatch(pen, x, y, width, height, colour) {
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

function line(pen, x1, x2, y, colour, dash, width = 1.5) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.setLineDash(dash);
  pen.beginPath();
  pen.moveTo(x1, y);
  pen.lineTo(x2, y);
  pen.stroke();
  pen.setLineDash([]);
}

function block(pen, node, failed, x, width, top) {
  pen.fillStyle = colourOf(node, failed);
  pen.beginPath();
  pen.roundRect(x, top, width, BAR, Math.min(3, width / 2));
  pen.fill();
  if (failed || node.status === "cancelled")
    hatch(pen, x, top, width, BAR, colours.panel);
}

const isWork = (doing) => doing === "work" || doing === "failed";

function piece(pen, node, doing, x, width, middle) {
  const top = middle - BAR / 2;
  if (isWork(doing)) block(pen, node, doing === "failed", x, width, top);
  else if (doing === "children") line(pen, x, x + width, middle, colours.scope, [], 3);
  else if (doing === "person") {
    pen.fillStyle = colours.person;
    pen.globalAlpha = 0.35;
    pen.fillRect(x, top, width, BAR);
    pen.globalAlpha = 1;
    hatch(pen, x, top, width, BAR, colours.person);
  } else line(pen, x, x + width, middle, colours.wait, doing === "slot" ? [1.5, 3.5] : [6, 4]);
}

function cross(pen, x, y, colour) {
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

function ending(pen, node, place, width, middle) {
  if (node.end === null) return;
  const x = place(node.end);
  if (node.status === "failed") cross(pen, x + 7, middle, colours.failed);
  else if (node.status === "skipped") diamond(pen, x + 1, middle, colours.skipped);
  else if (node.status === "cancelled") line(pen, x + 2, x + 8, middle, colours.cancelled, [], 2);
  const notes = [];
  if (node.attempts > 1) notes.push(`${node.attempts} attempts`);
  if (node.via) notes.push(node.via);
  if (notes.length) {
    pen.fillStyle = colours.soft;
    const words = notes.join(", "), left = x + (node.status === "failed" ? 16 : 8);
    const fits = left + pen.measureText(words).width < width;
    pen.textAlign = fits ? "left" : "right";
    pen.fillText(words, fits ? left : place(node.bars.length ? node.bars[0][1] : 0) - 8, middle);
    pen.textAlign = "left";
  }
}

function elsewhere(pen, node, width, middle) {
  // An arrow points to bars that lie outside the time shown.
  const begin = node.bars.length ? node.bars[0][1] : node.end;
  const end = node.end === null ? run.wall : node.end;
  if (begin === null || (begin <= to && end >= from)) return;
  pen.fillStyle = colours.soft;
  pen.fillText(end < from ? "◂" : "▸", end < from ? 4 : width - 14, middle);
}

function reveal(row) {
  const node = nodes[row], width = to - from;
  const work = node.bars.find((b) => isWork(b[0]));
  const at = work ? work[1] : node.end;
  if (at === null || (at >= from && at <= to)) return;
  from = Math.max(0, Math.min(at - width / 4, span * 1.04 - width));
  to = from + width;
}

function crowd(pen, row, place, width, middle) {
  // A folded scope shows where the work inside it lies; columns, so that many nodes stay cheap.
  const columns = new Float32Array(Math.ceil(width) + 1);
  const failures = new Uint8Array(columns.length);
  for (let i = row + 1; i <= lastInside[row]; i++) {
    for (const [doing, begin, end] of nodes[i].bars) {
      if (!isWork(doing)) continue;
      const first = Math.max(0, Math.floor(place(begin)));
      const last = Math.min(columns.length - 1, Math.floor(place(end)));
      for (let x = first; x <= last; x++) columns[x] += 1;
    }
    if (nodes[i].status === "failed" && nodes[i].end !== null) {
      const x = Math.round(place(nodes[i].end));
      if (x >= 0 && x < failures.length) failures[x] = 1;
    }
  }
  const most = columns.reduce((a, b) => Math.max(a, b), 1);
  pen.fillStyle = colours.work;
  columns.forEach((count, x) => {
    if (!count) return;
    pen.globalAlpha = 0.3 + 0.7 * (count / most);
    const height = 3 + (BAR - 1) * (count / most);
    pen.fillRect(x, middle + BAR / 2 - height, 1, height);
  });
  pen.globalAlpha = 1;
  failures.forEach((failed, x) => failed && cross(pen, x, middle - 2, colours.failed));
}

function grid(pen, width, height, place, labels) {
  const raw = (to - from) / Math.max(2, width / 110);
  const scale = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * scale).find((s) => s >= raw);
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const x = Math.round(place(at)) + 0.5;
    line(pen, x, x, 0, colours.line, []);
    pen.strokeStyle = colours.line;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x, 0);
    pen.lineTo(x, height);
    pen.stroke();
    if (labels) {
      pen.fillStyle = colours.soft;
      pen.fillText(at === 0 ? "0" : step < 1000 && to < 10000 ? `${+at.toFixed(2)} ms`
        : `${+(at / 1000).toFixed(3)} s`, x + 4, height / 2);
    }
  }
}

function drawPath(pen, place, width, shown) {
  const line_of = new Map(shown.map(([row, middle]) => [row, middle]));
  const where = (row) => {
    for (let at = row; at >= 0; at = nodes[at].parent) if (line_of.has(at)) return line_of.get(at);
    return null;
  };
  let before = null;
  pen.strokeStyle = colours.path;
  for (const [row, doing, begin, end] of run.path) {
    const middle = where(row);
    if (middle !== null) {
      const x = place(begin), x2 = Math.max(place(end), x + 1.5);
      pen.lineWidth = 2;
      if (line_of.has(row) && doing === "work") {
        pen.beginPath();
        pen.roundRect(x - 1, middle - BAR / 2 - 1.5, x2 - x + 2, BAR + 3, 4);
        pen.stroke();
      } else line(pen, x, x2, middle + BAR / 2 + 2, colours.path, [], 2);
      if (before && before[1] !== middle) {
        pen.globalAlpha = 0.75;
        pen.lineWidth = 1.25;
        pen.beginPath();
        pen.moveTo(place(before[0]), before[1]);
        pen.lineTo(x, middle);
        pen.stroke();
        pen.globalAlpha = 1;
      }
    }
    before = middle === null ? null : [end, middle];
  }
}

function drawBars() {
  const height = scroll.clientHeight, width = scroll.clientWidth - names.offsetWidth;
  if (width <= 0) return;
  pane.style.height = `${height}px`;
  const pen = surface(bars, width, height);
  const place = (ms) => ((ms - from) / (to - from)) * width;
  const first = Math.floor(scroll.scrollTop / ROW);
  const count = Math.ceil(height / ROW) + 1;
  const shown = rows.slice(first, first + count)
    .map((row, i) => [row, (first + i + 0.5) * ROW - scroll.scrollTop]);
  shown.forEach(([row, middle], i) => {
    pen.fillStyle = row === picked ? colours.picked : (first + i) % 2 ? colours.row : colours.ground;
    pen.fillRect(0, middle - ROW / 2, width, ROW);
  });
  grid(pen, width, height, place, false);
  for (const [row, middle] of shown) drawRow(pen, row, place, width, middle);
  drawPath(pen, place, width, shown);
  grid(surface(ticks, width, 28), width, 28, place, true);
  drawNames(shown);
}

function drawRow(pen, row, place, width, middle) {
  const node = nodes[row];
  const crowded = folded.has(row) && rows.length && lastInside[row] > row;
  for (const bar of node.bars) {
    const x = place(bar[1]), x2 = place(bar[2]);
    if (x2 < 0 || x > width) continue;
    const left = Math.max(x, -10);
    piece(pen, node, bar[0], left, Math.max(Math.min(x2, width + 10) - left, 1.5), middle);
  }
  if (crowded) crowd(pen, row, place, width, middle);
  elsewhere(pen, node, width, middle);
  ending(pen, node, place, width, middle);
}

function drawNames(shown) {
  names.replaceChildren(...shown.map(([row, middle]) => {
    const node = nodes[row];
    const line = element("div", `name ${node.status}`);
    line.classList.toggle("picked", row === picked);
    line.classList.toggle("critical", critical.has(row));
    line.style.top = `${middle - ROW / 2}px`;
    line.style.paddingLeft = `${8 + Math.min(node.depth, 8) * 14}px`;
    const inside = lastInside[row] > row;
    const twist = element("button", "twist", inside ? (folded.has(row) ? "▸" : "▾") : "");
    twist.type = "button";
    twist.tabIndex = -1;
    if (inside) twist.setAttribute("aria-label", folded.has(row) ? "Unfold" : "Fold");
    const parent = node.parent >= 0 ? nodes[node.parent].id : "";
    const short = parent && node.id.startsWith(parent) ? node.id.slice(parent.length) : node.id;
    const label = element("span", "label", short.replace(/^\//, ""));
    label.title = node.id;
    const kind = inside && folded.has(row) ? `${number(lastInside[row] - row)} inside` : node.kind;
    line.append(twist, label, element("span", "kind", kind));
    line.dataset.row = row;
    return line;
  }));
}

let due = false;
function draw() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => { due = false; drawBars(); });
}
