// Paints the rows that are in view, and the time axis. The strokes are those of the page of runs.
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
  const middles = new Map(shown);
  const where = (row) => {
    for (let at = row; at >= 0; at = nodes[at].parent)
      if (middles.has(at)) return { middle: middles.get(at), isOwn: at === row };
    return null;
  };
  drawPath(pen, run.path, place, where, BAR, colours.path);
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
    piece(pen, node, bar[0], left, Math.max(Math.min(x2, width + 10) - left, 1.5), middle, BAR, colours);
  }
  if (crowded) crowd(pen, row, place, width, middle);
  elsewhere(pen, node, width, middle);
  if (node.end !== null)
    ending(pen, node, place(node.end), place(node.bars.length ? node.bars[0][1] : 0), width, middle, colours);
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
