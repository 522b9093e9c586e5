// The list of runs: newest first, filtered, two of them picked to compare.
import { classes, html, useEffect, useMemo, useRef, useState } from "../base/html.js";
import { get } from "../base/api.js";
import { onChange } from "../base/live.js";
import { State, Trouble } from "../base/parts.js";
import { address, go } from "../base/route.js";
import { standingOf } from "../model/state.js";
import { reveal, useWindow } from "../base/window.js";
import { line } from "../base/visible.js";
import { ago, amount, clock, duration, number } from "../base/words.js";

const ROW = 52;
const EVERY_MS = 800;
const LOOK_MS = 5_000; // the death of a process is not written anywhere
const STANDINGS = ["", "running", "asking", "interrupted", "succeeded", "partial", "failed", "cancelled"];

function useRuns() {
  const [runs, setRuns] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    let timer = null;
    const read = () => {
      timer = null;
      get("/api/runs").then((found) => {
        setRuns(found.runs);
        setError(null);
      }, setError);
    };
    const end = onChange(() => {
      timer ??= setTimeout(read, EVERY_MS);
    });
    const looks = setInterval(() => document.hidden || read(), LOOK_MS);
    read();
    return () => {
      clearInterval(looks);
      clearTimeout(timer);
      end();
    };
  }, []);
  return [runs, error];
}

const took = (run) => (run.ended_wall ? (Date.parse(run.ended_wall) - Date.parse(run.wall)) / 1000 : null);

function Row({ run, place, isCurrent, isPicked, onPick, onFocus }) {
  const open = () => go(["run", run.run]);
  return html`<div role="row" class=${classes("run", [isCurrent, "current"])} style=${{ top: `${place * ROW}px` }}
      aria-rowindex=${place + 2} aria-selected=${isPicked} onClick=${() => {
        onFocus();
        open();
      }}>
    <span role="gridcell" class="pick" onClick=${(event) => event.stopPropagation()}>
      <input type="checkbox" tabindex="-1" checked=${isPicked} onChange=${onPick} aria-label=${`Compare ${line(run.run, 80)}`} /></span>
    <span role="gridcell" class="what"><a href=${address(["run", run.run])} tabindex="-1"
      onClick=${(event) => event.stopPropagation()}><bdi>${line(run.flow, 80)}</bdi></a>
      <small><bdi>${line(run.run, 80)}</bdi></small></span>
    <span role="gridcell"><${State} of=${standingOf(run)} /></span>
    <span role="gridcell" class="when" title=${clock(run.wall)}>${ago(run.wall)}</span>
    <span role="gridcell" class="num">${duration(took(run))}</span>
    <span role="gridcell" class="num">${number(run.records)}</span>
    <span role="gridcell" class="num">${run.parts > 1 ? amount(run.parts, "part") : ""}</span>
  </div>`;
}

export function RunsPage() {
  const [runs, error] = useRuns();
  const [words, setWords] = useState("");
  const [standing, setStanding] = useState("");
  const [picked, setPicked] = useState([]);
  const [current, setCurrent] = useState(0);
  const box = useRef(null);
  useEffect(() => {
    document.title = "Runs · weft";
  }, []);
  const found = useMemo(() => {
    const text = words.trim().toLowerCase();
    return (runs || []).filter(
      (run) =>
        (!standing || standingOf(run) === standing) &&
        (!text || run.run.toLowerCase().includes(text) || run.flow.toLowerCase().includes(text)),
    );
  }, [runs, words, standing]);
  const seen = useWindow(box, found.length, ROW);
  const pick = (run) =>
    setPicked((before) =>
      before.includes(run) ? before.filter((one) => one !== run) : [...before, run].slice(-2),
    );
  const key = (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -1e9, End: 1e9 };
    const run = found[current];
    if (event.key in steps) {
      const next = Math.max(0, Math.min(found.length - 1, current + steps[event.key]));
      setCurrent(next);
      reveal(box.current, next, ROW);
    } else if (event.key === "Enter" && run) go(["run", run.run]);
    else if (event.key === " " && run) pick(run.run);
    else return;
    event.preventDefault();
  };
  const at = found[current];
  return html`<main id="main" class="runs" tabindex="-1">
    <div class="bar">
      <h1>Runs</h1><a href="#/experiments">Experiments</a>
      <input type="search" placeholder="Find a run" aria-label="Find a run" value=${words} onInput=${(e) => setWords(e.target.value)} />
      <select aria-label="How it stands" value=${standing} onChange=${(e) => setStanding(e.target.value)}>
        ${STANDINGS.map((one) => html`<option value=${one}>${one || "in any state"}</option>`)}</select>
      <span class="count" role="status">${runs ? amount(found.length, "run") : "reading…"}</span>
      <span class="gap"></span>
      <button type="button" class="primary" disabled=${picked.length !== 2} onClick=${() => go(["compare", ...picked])}
        title="Pick two runs with their boxes, or with the space bar">Compare ${picked.length ? `(${picked.length} of 2)` : "two runs"}</button>
    </div>
    <${Trouble} error=${error} />
    <div class="grid" role="grid" aria-label="Runs" aria-rowcount=${found.length + 1}>
      <div role="row" class="run head" aria-rowindex="1">
        ${["", "workflow", "state", "began", "took", "records", ""].map(
          (name, i) => html`<span role="columnheader" class=${i > 3 ? "num" : ""}>${name}</span>`,
        )}</div>
      <div class="scroll" ref=${box} tabindex="0" onKeyDown=${key} role="rowgroup"
          aria-label=${at ? `Runs; ${line(at.run, 80)}, ${standingOf(at)}. Arrow keys move, Enter opens, the space bar picks` : "No runs"}>
        <div class="extent" style=${{ height: `${seen.height}px` }}>
          ${found.slice(seen.first, seen.last).map(
            (run, i) => html`<${Row} key=${run.run} run=${run} place=${seen.first + i}
            isCurrent=${seen.first + i === current} isPicked=${picked.includes(run.run)} onPick=${() => pick(run.run)}
            onFocus=${() => setCurrent(seen.first + i)} />`,
          )}
        </div></div>
      ${
        runs &&
        !found.length &&
        html`<p class="empty">${
          runs.length
            ? "No run fits this filter."
            : html`No run yet. <code>weft run FILE</code> records one, and it appears here while it happens.`
        }</p>`
      }
    </div>
  </main>`;
}
