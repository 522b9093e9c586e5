// Two runs beside each other, node by node.
import { classes, html, useEffect, useMemo, useRef, useState } from "../base/html.js";
import { State, Trouble, useRedraw } from "../base/parts.js";
import { address } from "../base/route.js";
import { reveal, useWindow } from "../base/window.js";
import { line, visible } from "../base/visible.js";
import { STATES, amount, duration, number } from "../base/words.js";
import { useSource } from "../model/source.js";
import { stateOf } from "../model/state.js";
import { differs, pairs } from "./pairs.js";
import { Results } from "./results.js";

const ROW = 30;
const REDRAW_MS = 400;

const took = (node, source) => (node && node.began !== null ? (node.ended ?? source.now) - node.began : null);

function change(before, after) {
  if (before === null || after === null || !before) return "";
  const percent = Math.round((100 * (after - before)) / before);
  return percent ? `${percent > 0 ? "+" : "−"}${Math.abs(percent)} %` : "";
}

function Cells({ node, source }) {
  if (!node)
    return html`<span role="gridcell" class="none">not there</span><span role="gridcell"></span><span role="gridcell"></span>`;
  return html`<span role="gridcell" class=${`dot ${stateOf(node, source.isLive)}`}><span class="word">${STATES[stateOf(node, source.isLive)]}</span></span>
    <span role="gridcell" class="num">${node.began === null ? "" : duration(took(node, source))}</span>
    <span role="gridcell" class="num">${node.tokens[1] ? number(node.tokens[1]) : ""}</span>`;
}

function Side({ source, label }) {
  const { run } = source;
  return html`<section class="side" aria-label=${label}><h2><a href=${address(["run", run.id])}><bdi>${line(run.flow || run.id, 60)}</bdi></a>
      <${State} of=${source.standing} /></h2><p class="run-id"><bdi>${visible(run.id)}</bdi></p>
    <dl class="figures"><div><dt>time</dt><dd>${duration(source.isLive ? source.now : run.now)}</dd></div>
      <div><dt>nodes</dt><dd>${number(run.nodes.size)}</dd></div>
      <div><dt>prompt tokens</dt><dd>${number(run.tokens[0])}</dd></div><div><dt>generated</dt><dd>${number(run.tokens[1])}</dd></div></dl>
    <${Trouble} error=${source.error} /></section>`;
}

export function ComparePage({ left, right }) {
  const [one, other] = [useSource(left, true), useSource(right, true)];
  useEffect(() => {
    document.title = "Two runs · weft";
  }, []);
  return one && other && html`<${Beside} one=${one} other=${other} />`;
}

function Beside({ one, other }) {
  const turn = useRedraw(
    (listener) => {
      const ends = [one.subscribe(listener), other.subscribe(listener)];
      return () => ends.forEach((end) => end());
    },
    REDRAW_MS,
    [one, other],
  );
  const [isOnlyDifferent, setOnlyDifferent] = useState(false);
  const [picked, setPicked] = useState("");
  const box = useRef(null);
  const all = useMemo(() => pairs(one.run, other.run), [turn]);
  const different = useMemo(() => all.filter(differs), [all]);
  const found = isOnlyDifferent ? different : all;
  const seen = useWindow(box, found.length, ROW);
  const current = found.findIndex(({ id }) => id === picked);
  const key = (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -1e9, End: 1e9 }[event.key];
    if (by === undefined || !found.length) return;
    const next = Math.max(0, Math.min(found.length - 1, current + by));
    setPicked(found[next].id);
    reveal(box.current, next, ROW);
    event.preventDefault();
  };
  const pair = found[current];
  return html`<main id="main" class="compare" tabindex="-1">
    <div class="bar"><nav aria-label="Way back"><a href="#/">Runs</a> <span aria-hidden="true">/</span></nav><h1>Two runs</h1>
      <span class="count" role="status">${amount(different.length, "node")} of ${number(all.length)} differ</span><span class="gap"></span>
      <label class="check"><input type="checkbox" checked=${isOnlyDifferent} onChange=${(e) => setOnlyDifferent(e.target.checked)} /> only what differs</label></div>
    <div class="sides"><${Side} source=${one} label="First run" /><${Side} source=${other} label="Second run" /></div>
    <div class="pairs">
      <div class="pair head"><span>node</span><span>first</span><span class="num">time</span><span class="num">tokens</span>
        <span></span><span>second</span><span class="num">time</span><span class="num">tokens</span><span class="num">change</span><span>result</span></div>
      <div class="scroll" ref=${box} tabindex="0" role="grid" onKeyDown=${key} aria-rowcount=${found.length}
          aria-activedescendant=${current >= 0 ? `pair-${current}` : undefined} aria-label="Nodes of both runs. Arrow keys move">
        <div class="extent" style=${{ height: `${seen.height}px` }}>${found
          .slice(seen.first, seen.last)
          .map((row, i) => {
            const place = seen.first + i;
            return html`<div role="row" key=${row.id} id=${`pair-${place}`} aria-selected=${row.id === picked} style=${{ top: `${place * ROW}px` }}
              class=${classes("pair", [row.id === picked, "picked"], [differs(row), "differs"])} onClick=${() => setPicked(row.id)}>
            <span role="gridcell" class="id"><bdi>${visible(row.id)}</bdi></span>
            <${Cells} node=${row.one} source=${one} /><span role="gridcell"></span><${Cells} node=${row.other} source=${other} />
            <span role="gridcell" class="num">${change(took(row.one, one), took(row.other, other))}</span>
            <span role="gridcell">${row.same === null ? "" : row.same ? "same" : html`<b>differs</b>`}</span></div>`;
          })}</div></div>
    </div>
    ${pair && html`<${Results} key=${pair.id} one=${one} other=${other} pair=${pair} />`}
  </main>`;
}
