// What one node came to in two runs, beside each other, line by line where they differ.
import { html } from "../base/html.js";
import { Text } from "../base/parts.js";
import { Failure } from "../node/failure.js";
import { useDetails } from "../node/details.js";

const NONE = { id: "", seqs: [] };

function Result({ source, node, label }) {
  const { records } = useDetails(source.run, node || NONE);
  const end = records.findLast((record) => record.event === "NodeFinished");
  const value = end?.outcome.value;
  return html`<section aria-label=${label}><h3>${label}</h3>
    ${end?.outcome.failure && html`<${Failure} failure=${end.outcome.failure} />`}
    ${
      value
        ? html`<${Text} text=${value.text} cut=${end.cut?.["outcome.value"]} run=${source.run.id} seq=${end.seq} field="outcome.value" label=${label} />`
        : html`<p class="note">${node ? "no result" : "the run has no such node"}</p>`
    }</section>`;
}

export const Results = ({ one, other, pair }) => html`<div class="results">
  <${Result} source=${one} node=${pair.one} label="First run" /><${Result} source=${other} node=${pair.other} label="Second run" /></div>`;
