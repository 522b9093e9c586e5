// One run: how it stands, its questions, its graph or rows, and the node that somebody picked.
import { html, useEffect, useMemo, useState } from "../base/html.js";
import { Dialog, State, Trouble, useRedraw } from "../base/parts.js";
import { send } from "../base/api.js";
import { amend } from "../base/route.js";
import { line } from "../base/visible.js";
import { GraphView } from "../graph/view.js";
import { filter, openAtFirst, scopes } from "../model/rows.js";
import { useSource } from "../model/source.js";
import { NodePanel } from "../node/panel.js";
import { OutlineView } from "../outline/view.js";
import { Figures } from "./figures.js";
import { Questions } from "./questions.js";
import { Unsettled } from "./unsettled.js";
import { ValuesView } from "./values.js";

const REDRAW_MS = 120;
const CLOCK_MS = 1_000;
const LOOK_MS = 3_000; // the death of a process is not written anywhere

function Cancel({ source }) {
  const [isAsked, setAsked] = useState(false);
  const [error, setError] = useState(null);
  const [isSent, setSent] = useState(false);
  if (!source.isLive) return null;
  const end = (yes) => {
    setAsked(false);
    if (yes)
      send(source.run.id, { kind: "cancel", node: null, value: null }).then(() => setSent(true), setError);
  };
  return html`<button type="button" class="danger" disabled=${isSent} onClick=${() => setAsked(true)}>
      ${isSent ? "cancelling…" : "Cancel run"}</button>
    ${
      isAsked &&
      html`<${Dialog} title="Cancel this run?" confirm="Cancel the run" danger onEnd=${end}>
      <p>What is under way ends now. What has ended stays in the journal, and the run can be resumed.</p><//>`
    }
    <${Trouble} error=${error} />`;
}

const VIEWS = [
  ["graph", "Graph"],
  ["timeline", "Timeline"],
  ["threads", "Threads"],
  ["values", "Inputs and outputs"],
];

function Tabs({ view, run }) {
  const there = VIEWS.filter(([name]) => name !== "threads" || run.thinks || view === name);
  const key = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const place = there.findIndex(([name]) => name === view);
    const [name] = there[(place + by + there.length) % there.length];
    amend({ view: name });
    document.getElementById(`tab-${name}`)?.focus();
    event.preventDefault();
  };
  return html`<div class="tabs" role="tablist" aria-label="View" onKeyDown=${key}>${there.map(
    ([name, label]) =>
      html`<button type="button" role="tab" id=${`tab-${name}`} aria-selected=${view === name} aria-controls="view"
      tabindex=${view === name ? 0 : -1} onClick=${() => amend({ view: name })}>${label}</button>`,
  )}</div>`;
}

function Shown({ source, query, turn }) {
  const { run } = source;
  const [open, setOpen] = useState(null);
  const [words, setWords] = useState("");
  const [state, setState] = useState("");
  const fits = useMemo(() => filter(words, state), [words, state]);
  const first = useMemo(() => openAtFirst(run), [run.grown]);
  const opened = open || first;
  const selected = run.nodes.get(query.node) || null;
  useEffect(() => {
    if (!selected) return;
    const above = [];
    for (let one = selected.parent; one; one = one.parent) above.push(one.id);
    if (above.some((id) => !opened.has(id))) setOpen(new Set([...opened, ...above]));
  }, [query.node, selected !== null]);
  const select = (node) => amend({ node: node ? node.id : "" });
  const known = VIEWS.some(([name]) => name === query.view) ? query.view : "graph";
  const view = known === "threads" && run.loaded && !run.thinks ? "graph" : known;
  const [isRows, folds] = [view === "timeline" || view === "threads", view === "graph" || view === "timeline"];
  const props = { source, open: opened, setOpen, selected, onSelect: select, turn };
  return html`<div class="bar views">
      <${Tabs} view=${view} run=${run} />
      ${
        isRows &&
        html`<input type="search" placeholder="Find a node" aria-label="Find a node" value=${words}
          onInput=${(e) => setWords(e.target.value)} />
        <select aria-label="Which nodes" value=${state} onChange=${(e) => setState(e.target.value)}>
          <option value="">all nodes</option><option value="active">under way</option>
          <option value="asking">asking a person</option><option value="bad">not plainly succeeded</option>
          <option value="substituted">saved by a default or fallback</option></select>`
      }
      <span class="gap"></span>
      ${
        folds &&
        html`<button type="button" onClick=${() => setOpen(new Set(scopes(run)))}>Unfold all</button>
        <button type="button" onClick=${() => setOpen(new Set())}>Fold all</button>`
      }
    </div>
    <div class=${selected ? "stage with-panel" : "stage"}>
      <div class="view" id="view" role="tabpanel" aria-labelledby=${`tab-${view}`}>
        ${
          view === "graph"
            ? html`<${GraphView} ...${props} />`
            : isRows
              ? html`<${OutlineView} ...${props} mode=${view} fits=${fits} key=${view} />`
              : html`<${ValuesView} source=${source} />`
        }
      </div>
      ${selected && html`<${NodePanel} key=${selected.id} source=${source} node=${selected} turn=${turn} onClose=${() => select(null)} />`}
    </div>`;
}

export function RunPage({ id, query }) {
  const source = useSource(id);
  return source && html`<${Watched} source=${source} query=${query} />`;
}

function Watched({ source, query }) {
  const { run } = source;
  const heard = useRedraw(source.subscribe, REDRAW_MS, [source]);
  const [clock, setClock] = useState(0);
  useEffect(() => {
    if (!source.isLive) return undefined;
    const ticks = setInterval(() => setClock((before) => before + 1), CLOCK_MS);
    const looks = setInterval(() => document.hidden || source.read(), LOOK_MS);
    return () => [ticks, looks].forEach(clearInterval);
  }, [source, source.isLive]);
  const flow = run.flow || source.header?.flow || "";
  useEffect(() => {
    document.title = `${line(flow || run.id, 60)} · weft`;
  }, [flow]);
  return html`<main id="main" class="run" tabindex="-1">
    <div class="bar">
      <nav aria-label="Way back"><a href="#/">Runs</a> <span aria-hidden="true">/</span></nav>
      <h1><bdi>${line(flow || run.id, 80)}</bdi></h1>
      <${State} of=${source.standing} />
      ${!run.loaded && !source.error && html`<span class="count" role="status">reading…</span>`}
      <span class="gap"></span>
      <${Cancel} source=${source} />
    </div>
    <${Trouble} error=${source.error} />
    <${Figures} source=${source} />
    <${Questions} source=${source} />
    <${Unsettled} source=${source} />
    <${Shown} source=${source} query=${query} turn=${heard + clock} />
  </main>`;
}
