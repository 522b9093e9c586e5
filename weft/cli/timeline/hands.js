// What people do with the page: find, fold, zoom, look closer. Then the first frame.
// ---- details

function times(node) {
  const sum = (doing) => node.bars.filter((b) => b[0] === doing).reduce((t, b) => t + b[2] - b[1], 0);
  const started = node.bars.find((b) => isWork(b[0]));
  const found = [["outcome", node.status + (node.via ? ` (${node.via})` : "")], ["kind", node.kind]];
  if (started) found.push(["started", duration(started[1])]);
  if (node.end !== null) found.push(["ended", duration(node.end)]);
  for (const [doing, label] of [["work", "worked"], ["failed", "worked in vain"], ["children", "waited for its nodes"],
    ["slot", "waited for a slot"], ["delay", "waited to retry"], ["person", "waited for a person"]])
    if (sum(doing) > 0) found.push([label, duration(sum(doing))]);
  if (node.attempts > 1) found.push(["attempts", String(node.attempts)]);
  if (node.tokens) found.push(["tokens", `${number(node.tokens[0])} prompt, ${number(node.tokens[1])} generated`]);
  if (node.resource) found.push(["slot of", node.resource + (run.limits[node.resource] ? ` (limit ${run.limits[node.resource]})` : "")]);
  if (node.sources) found.push(["waits for", node.sources.join(", ")]);
  return found;
}

function pick(row) {
  picked = row;
  const panel = $("details");
  panel.hidden = row < 0;
  if (row >= 0) {
    const node = nodes[row], table = element("table");
    const close = element("button", "close", "×");
    close.type = "button";
    close.setAttribute("aria-label", "Close");
    close.addEventListener("click", () => pick(-1));
    const found = times(node);
    const share = (critical.get(row) || []).reduce((t, [, a, b]) => t + b - a, 0);
    if (share > 0) found.push(["critical path", `${duration(share)}, ${Math.round((100 * share) / span)} %`]);
    for (const [label, value] of found) {
      const line = element("tr");
      line.append(element("td", "", label), element("td", "", value));
      table.append(line);
    }
    panel.replaceChildren(close, element("h2", "", node.id), table);
    const text = (title, words, className) =>
      words && panel.append(element("h3", "", title), element("pre", className, words));
    text("failure", node.failure, "failure");
    text("log", node.logs && node.logs.join("\n"));
    text("streamed text", node.text);
    text("result", node.value);
  }
  draw();
}

function show(row) {
  const at = rows.indexOf(row);
  if (at < 0) return;
  const top = at * ROW;
  if (top < scroll.scrollTop) scroll.scrollTop = top;
  else if (top + ROW > scroll.scrollTop + scroll.clientHeight)
    scroll.scrollTop = top + ROW - scroll.clientHeight;
}

// ---- hands

function zoom(factor, at = (from + to) / 2) {
  const width = Math.min(span * 1.04, Math.max((to - from) * factor, span / 1e6));
  const start = at - ((at - from) / (to - from)) * width;
  from = Math.max(0, Math.min(start, span * 1.04 - width));
  to = from + width;
  draw();
}
function move(by) {
  const width = to - from;
  from = Math.max(0, Math.min(from + by, span * 1.04 - width));
  to = from + width;
  draw();
}
function fit() { from = 0; to = span * 1.04; draw(); }
function toggle(row) {
  if (lastInside[row] === row) return;
  if (!folded.delete(row)) folded.add(row);
  choose();
}
const rowAt = (event) =>
  rows[Math.floor((event.clientY - scroll.getBoundingClientRect().top + scroll.scrollTop) / ROW)];
const timeAt = (event) =>
  from + ((event.clientX - bars.getBoundingClientRect().left) / bars.clientWidth) * (to - from);

$("search").addEventListener("input", choose);
$("only-path").addEventListener("change", choose);
$("only-bad").addEventListener("change", choose);
$("fold").addEventListener("click", () => { nodes.forEach((_, i) => lastInside[i] > i && folded.add(i)); choose(); });
$("unfold").addEventListener("click", () => { folded.clear(); choose(); });
$("in").addEventListener("click", () => zoom(0.6));
$("out").addEventListener("click", () => zoom(1 / 0.6));
$("fit").addEventListener("click", fit);
scroll.addEventListener("scroll", draw);
window.addEventListener("resize", () => { paintLegend(); draw(); });
new ResizeObserver(draw).observe(scroll);

names.addEventListener("click", (event) => {
  const line = event.target.closest(".name");
  if (!line) return;
  if (event.target.closest(".twist")) toggle(+line.dataset.row);
  else { reveal(+line.dataset.row); pick(+line.dataset.row); }
});
names.addEventListener("dblclick", (event) => {
  const line = event.target.closest(".name");
  if (line && !event.target.closest(".twist")) toggle(+line.dataset.row);
});

let drag = null;
bars.addEventListener("pointerdown", (event) => {
  drag = { x: event.clientX, moved: false };
  bars.setPointerCapture(event.pointerId);
});
bars.addEventListener("pointermove", (event) => {
  if (drag) {
    const by = drag.x - event.clientX;
    drag.moved = drag.moved || Math.abs(by) > 3;
    if (drag.moved) { move((by / bars.clientWidth) * (to - from)); drag.x = event.clientX; }
    tip.hidden = true;
    return;
  }
  hover(event);
});
bars.addEventListener("pointerup", (event) => {
  const row = rowAt(event);
  if (drag && !drag.moved) pick(row === undefined || row === picked ? -1 : row);
  drag = null;
});
bars.addEventListener("pointerleave", () => { tip.hidden = true; });
bars.addEventListener("dblclick", fit);
bars.addEventListener("wheel", (event) => {
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    zoom(Math.exp(event.deltaY * 0.003), timeAt(event));
  } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    event.preventDefault();
    move(((event.deltaX || event.deltaY) / bars.clientWidth) * (to - from));
  }
}, { passive: false });

function hover(event) {
  const row = rowAt(event);
  if (row === undefined) { tip.hidden = true; return; }
  const node = nodes[row], at = timeAt(event);
  const words = { work: "works", failed: "works in vain", children: "waits for the nodes inside", slot: "waits for a slot",
    delay: "waits before the next attempt", person: "waits for a person" };
  const bar = node.bars.find((b) => at >= b[1] && at <= b[2]);
  const lines = [node.id, node.status + (node.via ? ` (${node.via})` : "")];
  if (bar) lines.push(`${words[bar[0]]} for ${duration(bar[2] - bar[1])}`);
  if (node.tokens) lines.push(`${number(node.tokens[0] + node.tokens[1])} tokens`);
  if (node.failure) lines.push(node.failure.slice(0, 200));
  tip.textContent = lines.join("\n");
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - box.width - 8)}px`;
  tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18}px`;
}

document.addEventListener("keydown", (event) => {
  if (event.target instanceof HTMLInputElement && event.target.type === "search") return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const step = (by) => {
    const at = Math.max(0, Math.min(rows.length - 1, rows.indexOf(picked) + by));
    if (rows.length) { reveal(rows[at]); pick(rows[at]); show(rows[at]); }
  };
  const actions = {
    "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), "0": fit,
    ArrowLeft: () => move(-(to - from) / 8), ArrowRight: () => move((to - from) / 8),
    ArrowDown: () => step(1), ArrowUp: () => step(-1),
    Enter: () => picked >= 0 && toggle(picked), Escape: () => pick(-1),
  };
  if (event.key === "Enter" && event.target instanceof HTMLButtonElement) return;
  if (actions[event.key]) { event.preventDefault(); actions[event.key](); }
});

// ---- the frame

function paintLegend() {
  const pen = legend.getContext("2d");
  pen.font = "11px system-ui, sans-serif";
  const room = document.querySelector("nav").clientWidth - 36;
  drawLegend((words) => pen.measureText(words).width, (width, height) => surface(legend, width, height), room, colours);
}

function drawHead() {
  $("flow").textContent = run.flow;
  $("status").textContent = run.status;
  $("status").className = run.status;
  const figures = [["wall time", duration(run.wall)], ["node times", duration(run.busy)]];
  if (run.speedup !== null) figures.push(["node times ÷ wall time", `${run.speedup.toFixed(1)}×`]);
  figures.push(["most at once", number(run.most)], ["nodes", number(nodes.length)]);
  if (run.tokens[0] + run.tokens[1]) figures.push(["tokens", number(run.tokens[0] + run.tokens[1])]);
  if (run.money) figures.push(["cost", `$${run.money.toFixed(4)}`]);
  $("figures").replaceChildren(...figures.map(([label, value]) => {
    const pair = element("div");
    pair.append(element("dt", "", label), element("dd", "", value));
    return pair;
  }));
  $("reasons").hidden = run.reasons.length === 0;
  $("reasons").textContent = run.reasons.join("\n");
  $("axis").style.setProperty("--bar", `${scroll.offsetWidth - scroll.clientWidth}px`);
}

function repaint() { readColours(); paintLegend(); draw(); }
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
drawHead();
fit();
choose();
repaint();
