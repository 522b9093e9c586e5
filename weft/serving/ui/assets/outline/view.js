// The nodes as rows: as a timeline with bars, or as threads with what they wrote. Only rows in sight
// are in the document.
import { classes, html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../base/html.js";
import { useTheme } from "../base/theme.js";
import { reveal, useWindow } from "../base/window.js";
import { line, visible } from "../base/visible.js";
import { STATES, duration, number } from "../base/words.js";
import { rows as nested, threads } from "../model/rows.js";
import { isUnsure, stateOf } from "../model/state.js";
import { paintBars, paintLegend, paintScale, palette } from "./paint.js";
import { useSpan } from "./span.js";

const ROW = 26;
const DEEPEST = 14;

const tail = (text) => line(text.slice(-600), 600);

function words(row) {
  const said = [row.node, ...(row.calls || [])]
    .map((node) => [...node.calls.values()].at(-1)?.text || node.text)
    .filter(Boolean);
  return said.length ? tail(said.at(-1)) : line(row.node.value, 300);
}

const tokens = (row) =>
  [row.node, ...(row.calls || [])].reduce((sum, node) => sum + Math.max(node.tokens[1], node.streamed), 0);

function Name({ row, open, toggle }) {
  const { node, depth } = row;
  const folds = node.children.length > 0 && open;
  return html`<span role="gridcell" class="name" style=${{ paddingLeft: `calc(8px + ${Math.min(depth, DEEPEST)} * var(--indent))` }}>
    <span class="twist" aria-hidden="true" onClick=${(event) => {
      if (folds) {
        event.stopPropagation();
        toggle(node);
      }
    }}>
      ${folds ? (open.has(node.id) ? "▾" : "▸") : ""}</span>
    <bdi class="id">${visible(node.name)}</bdi><span class="kind">${visible(node.kind)}</span></span>`;
}

function Detail({ row, source }) {
  const { node } = row;
  return html`<span role="gridcell" class="num">${tokens(row) ? `${number(tokens(row))} tok` : ""}</span>
    <span role="gridcell" class="num">${node.began === null ? "" : duration((node.ended ?? source.now) - node.began)}</span>
    <span role="gridcell" class="said"><bdi>${words(row)}</bdi></span>`;
}

export function OutlineView({ source, mode, open, setOpen, fits, selected, onSelect, turn }) {
  const { run } = source;
  const box = useRef(null);
  const bars = useRef(null);
  const scale = useRef(null);
  const legend = useRef(null);
  const theme = useTheme();
  const colours = useMemo(palette, [theme]);
  const font = useMemo(() => getComputedStyle(document.body).fontFamily, []);
  const isTimeline = mode === "timeline";
  const found = useMemo(
    () => (isTimeline ? nested(run, open, fits) : threads(run, fits)),
    [run, open, fits, run.grown, fits && turn, mode],
  );
  const seen = useWindow(box, found.length, ROW);
  const { span, hands, zoom, fit } = useSpan(source, bars);
  const current = found.findIndex(({ node }) => node === selected);
  const shown = found.slice(seen.first, seen.last);

  useLayoutEffect(() => {
    if (!isTimeline) return;
    const look = { colours, font, selected, nodes: run.nodes, now: source.isLive ? source.now : run.now };
    const top = seen.first * ROW - seen.top;
    paintScale(scale.current, span, look);
    bars.current.dataset.path = paintBars(bars.current, shown, top, ROW, span, look, source.timing);
  });
  useLayoutEffect(() => {
    if (isTimeline) paintLegend(legend.current, box.current.clientWidth - 32, { colours, font });
  }, [isTimeline, colours, seen.wide]);
  useEffect(() => {
    if (current >= 0) reveal(box.current, current, ROW);
  }, [selected]);

  const toggle = (node) => {
    const next = new Set(open);
    if (!next.delete(node.id)) next.add(node.id);
    setOpen(next);
  };
  const step = (place) =>
    found.length && onSelect(found[Math.max(0, Math.min(found.length - 1, place))].node);
  const unfold = (wanted) => {
    if (!selected) return;
    if (selected.children.length && isTimeline && open.has(selected.id) !== wanted) toggle(selected);
    else if (wanted) step(current + 1);
    else if (selected.parent) onSelect(selected.parent);
  };
  const key = (event) => {
    const page = Math.max(1, Math.floor(seen.view / ROW) - 1);
    const actions = {
      ArrowDown: () => step(current + 1),
      ArrowUp: () => step(Math.max(0, current - 1)),
      Home: () => step(0),
      End: () => step(found.length),
      PageDown: () => step(current + page),
      PageUp: () => step(Math.max(0, current - page)),
      ArrowRight: () => unfold(true),
      ArrowLeft: () => unfold(false),
      Enter: () => selected?.children.length && isTimeline && toggle(selected),
      "+": () => zoom(0.6),
      "=": () => zoom(0.6),
      "-": () => zoom(1 / 0.6),
      0: fit,
      Escape: () => onSelect(null),
    };
    if (!actions[event.key]) return;
    actions[event.key]();
    event.preventDefault();
  };
  return html`<div class=${`outline ${mode}`}>
    <div class="axis">
      <span>${isTimeline ? "node" : "thread"}</span>
      ${
        isTimeline
          ? html`<canvas ref=${scale} aria-hidden="true"></canvas>
        <span class="tools"><button type="button" onClick=${() => zoom(1 / 0.6)} aria-label="Zoom out" title="Zoom out (−)">−</button>
          <button type="button" onClick=${() => zoom(0.6)} aria-label="Zoom in" title="Zoom in (+)">+</button>
          <button type="button" onClick=${fit} title="Show everything (0)">Fit</button></span>`
          : html`<span>state</span><span class="num">tokens</span><span class="num">time</span><span>what it wrote last</span>`
      }
    </div>
    <div class="scroll" ref=${box} tabindex="0" role="treegrid" onKeyDown=${key} aria-rowcount=${found.length}
        aria-activedescendant=${current >= 0 ? `row-${current}` : undefined}
        aria-label="Nodes of the run. Arrow keys move and fold, plus and minus zoom">
      <div class="extent" style=${{ height: `${seen.height}px` }}>
        ${
          isTimeline &&
          html`<canvas ref=${bars} class="bars" style=${{ height: `${seen.view}px` }} ...${hands} aria-hidden="true"
          onClick=${(event) => {
            const place = Math.floor((event.offsetY + seen.top) / ROW);
            if (found[place]) onSelect(found[place].node);
          }}></canvas>`
        }
        ${shown.map((row, i) => {
          const place = seen.first + i;
          const state = stateOf(row.node, source.isLive);
          return html`<div key=${row.node.id} id=${`row-${place}`} role="row" class=${classes("row", [row.node === selected, "picked"])}
              style=${{ top: `${place * ROW}px` }} aria-level=${row.depth + 1} aria-rowindex=${place + 1} aria-selected=${row.node === selected}
              aria-expanded=${isTimeline && row.node.children.length ? open.has(row.node.id) : undefined}
              onClick=${() => onSelect(row.node)} onDblClick=${() => isTimeline && row.node.children.length && toggle(row.node)}>
            <${Name} row=${row} open=${isTimeline ? open : null} toggle=${toggle} />
            <span role="gridcell" class=${`dot ${state}`} title=${STATES[state]}><span class="word">${STATES[state]}</span></span>
            ${isUnsure(row.node, source.isLive) && html`<span role="gridcell" class="unsure" title="effect unknown">?<span class="unseen">effect unknown</span></span>`}
            ${!isTimeline && html`<${Detail} row=${row} source=${source} />`}
          </div>`;
        })}
      </div></div>
    ${
      isTimeline &&
      html`<canvas ref=${legend} class="legend" role="img"
      aria-label="Legend: bars are work; hatched red ends in a cross where a node failed; dotted lines wait for a slot, dashed ones for a retry; outlined bars are the critical path"></canvas>`
    }
    ${!found.length && html`<p class="empty">${run.nodes.size ? "No node fits this filter." : "Nothing has happened yet."}</p>`}
  </div>`;
}
