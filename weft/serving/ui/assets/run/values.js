// What went into the run and what came of it, as the journal has it: without secrets.
import { html, useEffect, useState } from "../base/html.js";
import { about, get, save } from "../base/api.js";
import { Text, Trouble } from "../base/parts.js";
import { visible } from "../base/visible.js";
import { number } from "../base/words.js";

const LONG = 600; // characters from which on a value is folded at first

function Value({ run, of, value }) {
  const { name, text, cut } = value;
  const isLong = text.length > LONG || cut !== null;
  const length = cut > 0 ? cut : text.length;
  return html`<details class="value" open=${!isLong}><summary><bdi>${visible(name)}</bdi>
      <small>${value.json ? "JSON" : "text"}${isLong && `, ${cut === -1 ? "over " : ""}${number(length)} characters`}</small></summary>
    <${Text} text=${text} cut=${cut ?? undefined} label=${name}
      onSave=${() => save(about("value", run, { of, name }), `${run}-${name}`)} /></details>`;
}

const Values = ({ run, of, values, title }) =>
  html`<section aria-label=${title}><h3>${title} <small>${number(values.length)}</small></h3>
    ${values.map((value) => html`<${Value} key=${value.name} run=${run} of=${of} value=${value} />`)}
    ${!values.length && html`<p class="note">none</p>`}</section>`;

export function ValuesView({ source }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const { id } = source.run;
  useEffect(() => {
    const abort = new AbortController();
    get(about("values", id), { signal: abort.signal }).then(
      (values) => {
        setFound(values);
        setError(null);
      },
      (failed) => failed.name === "AbortError" || setError(failed),
    );
    return () => abort.abort();
  }, [id, source.standing]);
  return html`<div class="values"><${Trouble} error=${error} />
    ${!found && !error && html`<p class="note" role="status">reading…</p>`}
    ${
      found &&
      html`<${Values} run=${id} of="inputs" values=${found.inputs} title="Inputs" />
      ${
        source.header?.summary.ended_wall
          ? html`<${Values} run=${id} of="outputs" values=${found.outputs} title="Outputs" />`
          : html`<section aria-label="Outputs"><h3>Outputs</h3><p class="note">They are there when the run has ended.</p></section>`
      }
      ${found.missing.map(
        ({ name, why }) =>
          html`<p class="failure" key=${name}><bdi>${visible(name)}</bdi> is missing: <span dir="auto">${visible(why)}</span></p>`,
      )}`
    }</div>`;
}
