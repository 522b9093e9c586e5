// The run that the element #data holds, and which of its rows are shown.
// Texts of models and tools are only ever set as textContent or painted on the canvas.
const run = JSON.parse(document.getElementById("data").textContent);
const nodes = run.nodes;
const ROW = 24, BAR = 12, MANY_ROWS = 300, WIDE = 20;
const $ = (id) => document.getElementById(id);
const scroll = $("scroll"), extent = $("extent"), pane = $("window"), names = $("names");
const bars = $("bars"), ticks = $("ticks"), legend = $("legend"), tip = $("tip");

// ---- the program's shape

const critical = new Map();
for (const [row, doing, from, to] of run.path) {
  if (!critical.has(row)) critical.set(row, []);
  critical.get(row).push([doing, from, to]);
}
const folded = new Set();
if (nodes.length > MANY_ROWS) nodes.forEach((n, i) => n.children > WIDE && folded.add(i));
// Rows are in depth-first order, so what is inside row i is i+1 .. lastInside[i].
const lastInside = nodes.map((_, i) => i);
for (let i = nodes.length - 1; i >= 0; i--) {
  const parent = nodes[i].parent;
  if (parent >= 0) lastInside[parent] = Math.max(lastInside[parent], lastInside[i]);
}
const span = Math.max(run.wall, 0.001);
let from = 0, to = span, picked = -1, rows = [];

const duration = (ms) =>
  ms < 1 ? `${ms.toFixed(2)} ms` : ms < 1000 ? `${ms.toFixed(0)} ms`
  : ms < 60000 ? `${(ms / 1000).toFixed(2)} s`
  : ms < 3600000 ? `${Math.floor(ms / 60000)} min ${Math.floor((ms % 60000) / 1000)} s`
  : `${Math.floor(ms / 3600000)} h ${Math.floor((ms % 3600000) / 60000)} min`;
const number = (n) => n.toLocaleString("en");
const element = (tag, className, text) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
};

// ---- which rows are shown

function choose() {
  const words = $("search").value.trim().toLowerCase();
  const onlyPath = $("only-path").checked, onlyBad = $("only-bad").checked;
  rows = [];
  if (!words && !onlyPath && !onlyBad) {
    for (let i = 0; i < nodes.length; i++) {
      rows.push(i);
      if (folded.has(i)) i = lastInside[i];
    }
  } else {
    const wanted = new Set();
    nodes.forEach((node, i) => {
      const fits = (!words || node.id.toLowerCase().includes(words))
        && (!onlyPath || critical.has(i)) && (!onlyBad || node.status !== "succeeded" || stoodIn(node));
      for (let at = i; fits && at >= 0 && !wanted.has(at); at = nodes[at].parent) wanted.add(at);
    });
    rows = [...wanted].sort((a, b) => a - b);
  }
  extent.style.height = `${Math.max(1, rows.length) * ROW}px`;
  $("empty").hidden = rows.length > 0;
  draw();
}
