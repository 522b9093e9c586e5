// A call of a model: its prompt, message by message, and its answer, while it is written or whole.
import { html } from "../base/html.js";
import { Text } from "../base/parts.js";
import { visible } from "../base/visible.js";
import { amount, number } from "../base/words.js";
import { Failure } from "./failure.js";
import { Tail } from "./tail.js";

const OPEN_CHARS = 6_000;

function Prompt({ run, record }) {
  const { request } = record;
  const field = (place, name) => `request.messages.${place}.${name}`;
  if (!request.messages.length)
    return html`<p class="note">The prompt is ${number(record.cut?.["request.prompt_token_ids"] ?? request.prompt_token_ids.length)} token ids.</p>`;
  const missing = (record.cut?.["request.messages"] ?? request.messages.length) - request.messages.length;
  return html`<ol class="messages">${request.messages.map(
    (message, place) => html`<li class=${`message ${message.role}`} key=${place}>
      <h4>${visible(message.role)}</h4>
      ${
        message.content &&
        html`<${Text} text=${message.content} cut=${record.cut?.[field(place, "content")]} run=${run.id} seq=${record.seq}
        field=${field(place, "content")} label=${`Message ${place + 1}, ${message.role}`} />`
      }
      ${message.tool_calls.map((call) => html`<p class="asks"><code>${visible(call.name)}</code> <code>${visible(call.arguments)}</code></p>`)}
    </li>`,
  )}
    ${missing > 0 && html`<li class="note">and ${amount(missing, "message")} more</li>`}</ol>`;
}

function settings({ request }) {
  const { sampling } = request;
  const found = Object.entries(sampling).filter(
    ([, value]) => value !== null && !(Array.isArray(value) && !value.length),
  );
  if (request.decode && request.decode.method !== "autoregressive")
    found.push(["decode", request.decode.method]);
  if (request.schema) found.push(["schema", "held to"]);
  if (request.tools.length) found.push(["tools", request.tools.map((tool) => tool.name).join(", ")]);
  return found.map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`).join(" · ");
}

function Answer({ run, record }) {
  if (record.failure) return html`<${Failure} failure=${record.failure} />`;
  const { completion } = record;
  const { usage } = completion;
  const part = (name, label, className) =>
    completion[name] &&
    html`<${Text} text=${completion[name]} cut=${record.cut?.[`completion.${name}`]}
    run=${run.id} seq=${record.seq} field=${`completion.${name}`} label=${label} className=${className} />`;
  return html`${completion.reasoning && html`<h4>reasoning</h4>`}${part("reasoning", "Reasoning", "reasoning")}
    <h4>answer</h4>${part("text", "Answer")}
    ${completion.tool_calls.map((call) => html`<p class="asks">calls <code>${visible(call.name)}</code> <code>${visible(call.arguments)}</code></p>`)}
    <p class="note">${number(usage.prompt_tokens)} prompt tokens${usage.cached_tokens ? ` (${number(usage.cached_tokens)} from cache)` : ""},${" "}
      ${number(usage.completion_tokens)} generated, ended by ${visible(completion.finish_reason)}</p>`;
}

export function ModelCall({ run, node, call }) {
  const { asked, answer } = call;
  const live = node.calls.get(call.call);
  const streamed = live?.text || (live && node.text);
  const isLong =
    asked && asked.request.messages.reduce((sum, message) => sum + message.content.length, 0) > OPEN_CHARS;
  return html`<section class="call"><h3>Model <bdi>${visible(asked?.model ?? "")}</bdi>
      ${call.attempt > 1 && html`<small>attempt ${call.attempt}</small>`}</h3>
    ${
      asked &&
      html`<details open=${!isLong}><summary>Prompt <small>${amount(asked.cut?.["request.messages"] ?? asked.request.messages.length, "message")}</small></summary>
      <${Prompt} run=${run} record=${asked} /></details>
      ${settings(asked) && html`<p class="note"><bdi>${visible(settings(asked))}</bdi></p>`}`
    }
    ${answer && html`<${Answer} run=${run} record=${answer} />`}
    ${!answer && live?.reasoning && html`<h4>reasoning</h4><${Tail} text=${live.reasoning} label="Reasoning as it streams" isLive />`}
    ${
      !answer &&
      live &&
      html`<h4>answer <small>${number(live.tokens || node.streamed)} tokens so far</small></h4>
      ${streamed ? html`<${Tail} text=${streamed} label="Answer as it streams" isLost=${node.textLost} isLive />` : html`<p class="note">reading the prompt…</p>`}`
    }
  </section>`;
}
