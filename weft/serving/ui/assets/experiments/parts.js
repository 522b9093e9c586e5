// What the pages of experiments have in common: reading, numbers with intervals, the top.
import { html, useEffect, useState } from "../base/html.js";
import { get } from "../base/api.js";
import { Trouble } from "../base/parts.js";
import { line } from "../base/visible.js";

export const score = (value) => (value === null || value === undefined ? "none" : value.toFixed(4));
export const signed = (value, digits = 4) =>
  value === null || value === undefined ? "none" : `${value > 0 ? "+" : ""}${value.toFixed(digits)}`;
export const bounds = ({ low, high }, show = score) =>
  low === null || low === undefined || high === null ? "" : `${show(low)} to ${show(high)}`;

/** What the server has at `path`: [found, error]; read anew when the path changes. */
export function useFound(path) {
  const [state, setState] = useState([null, null]);
  useEffect(() => {
    let isOver = false;
    get(path).then(
      (found) => isOver || setState([found, null]),
      (error) => isOver || setState(([before]) => [before, error]),
    );
    return () => {
      isOver = true;
    };
  }, [path]);
  return state;
}

export const Top = ({ title, run, error, children }) =>
  html`<div class="bar"><nav aria-label="Way back"><a href="#/">Runs</a>${" / "}
    ${run && html`<a href="#/experiments">Experiments</a>${" / "}`}</nav><h1><bdi>${line(title, 80)}</bdi></h1>${children}</div>
  <${Trouble} error=${error} />`;

/** A table. `head`: names of columns, those that begin with # are numbers. */
export const Table = ({ head, rows, label }) =>
  html`<div class="sheet"><table aria-label=${label}><thead><tr>${head.map(
    (name) => html`<th scope="col" class=${name.startsWith("#") ? "num" : ""}>${name.replace("#", "")}</th>`,
  )}</tr></thead><tbody>${rows.map(
    (row) =>
      html`<tr>${row.map((cell, i) => html`<td class=${head[i].startsWith("#") ? "num" : ""}>${cell}</td>`)}</tr>`,
  )}</tbody></table></div>`;

export const Steps = ({ after, size, more, onMove }) =>
  (after > 0 || more) &&
  html`<p class="buttons"><button type="button" disabled=${!after} onClick=${() => onMove(Math.max(0, after - size))}>Previous</button>
    <button type="button" disabled=${!more} onClick=${() => onMove(after + size)}>Next</button></p>`;
