// A call of a tool: its arguments, what it gave back, and whether its effect happened.
import { html } from "../base/html.js";
import { Text } from "../base/parts.js";
import { visible } from "../base/visible.js";
import { duration } from "../base/words.js";
import { Failure } from "./failure.js";

const EFFECTS = {
  pure: "changes nothing",
  idempotent: "may be repeated",
  once: "never repeated",
  unknown: "",
};

function Returned({ run, record }) {
  if (record.failure) return html`<${Failure} failure=${record.failure} />`;
  if (!record.value) return html`<p class="note">It gave nothing back.</p>`;
  return html`<h4>gave back ${record.value.json && html`<small>JSON</small>`}</h4>
    <${Text} text=${record.value.text} cut=${record.cut?.value} run=${run.id} seq=${record.seq} field="value" label="What it gave back" />`;
}

export function ToolCall({ run, call, isEnded }) {
  const { asked, answer } = call;
  const effect = asked && EFFECTS[asked.effect];
  return html`<section class="call"><h3>Tool <bdi>${visible(asked?.tool ?? call.call)}</bdi>
      ${call.attempt > 1 && html`<small>attempt ${call.attempt}</small>`}
      ${effect && html`<span class="effect">${effect}</span>`}</h3>
    ${asked?.arguments && html`<h4>arguments</h4><${Text} text=${asked.arguments.text} cut=${asked.cut?.arguments} run=${run.id} seq=${asked.seq} field="arguments" label="Arguments" />`}
    ${
      answer
        ? html`<${Returned} run=${run} record=${answer} />
        <p class="note">${asked ? `took ${duration(answer.at_s - asked.at_s)}` : ""}${answer.done === "done" ? "" : `; its effect: ${visible(answer.done)}`}</p>`
        : html`<p class="note">${isEnded ? "Nobody knows how it ended." : "under way…"}</p>`
    }
  </section>`;
}
