"use strict";
// Draws the run that the element #data holds. Texts of models and tools are only ever set as
// textContent or painted on the canvas.
(() => {
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
          && (!onlyPath || critical.has(i)) && (!onlyBad || node.status !== "succeeded");
        for (let at = i; fits && at >= 0 && !wanted.has(at); at = nodes[at].parent) wanted.add(at);
      });
      rows = [...wanted].sort((a, b) => a - b);
    }
    extent.style.height = `${Math.max(1, rows.length) * ROW}px`;
    $("empty").hidden = rows.length > 0;
    draw();
  }

  // ---- drawing

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
  window.addEventListener("resize", draw);
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

  function drawLegend() {
    const entries = [
      ["work", (pen, x) => block(pen, {}, false, x, 26, 4)],
      ["critical path", (pen, x) => { pen.strokeStyle = colours.path; pen.lineWidth = 2; pen.strokeRect(x + 1, 4, 24, 12); }],
      ["failed", (pen, x) => { block(pen, {}, true, x, 18, 4); cross(pen, x + 25, 10, colours.failed); }],
      ["stand-in", (pen, x) => block(pen, { via: "default" }, false, x, 26, 4)],
      ["skipped", (pen, x) => diamond(pen, x + 18, 10, colours.skipped)],
      ["slot", (pen, x) => line(pen, x, x + 26, 10, colours.wait, [1.5, 3.5])],
      ["retry", (pen, x) => line(pen, x, x + 26, 10, colours.wait, [6, 4])],
      ["person", (pen, x) => hatch(pen, x, 4, 26, BAR, colours.person)],
    ];
    const measure = legend.getContext("2d");
    measure.font = "11px system-ui, sans-serif";
    const widths = entries.map(([label]) => 32 + measure.measureText(label).width + 16);
    const pen = surface(legend, widths.reduce((a, b) => a + b, 0), 20);
    let x = 0;
    entries.forEach(([label, paint], i) => {
      paint(pen, x);
      pen.fillStyle = colours.soft;
      pen.fillText(label, x + 32, 10.5);
      x += widths[i];
    });
  }

  function drawHead() {
    $("flow").textContent = run.flow;
    $("status").textContent = run.status;
    $("status").className = run.status;
    const figures = [["wall time", duration(run.wall)], ["node times", duration(run.busy)]];
    if (run.speedup !== null) figures.push(["parallel speed-up", `${run.speedup.toFixed(1)}×`]);
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

  function repaint() { readColours(); drawLegend(); draw(); }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  drawHead();
  fit();
  choose();
  repaint();
})();
