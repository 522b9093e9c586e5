// What there is to know of one node: its question, its failure, its calls, its result.
import { html, useState } from "../base/html.js";
import { send } from "../base/api.js";
import { Dialog, State, Text, Trouble } from "../base/parts.js";
import { visible } from "../base/visible.js";
import { duration, money, number } from "../base/words.js";
import { isUnsure, stateOf } from "../model/state.js";
import { Decoded } from "./decoded.js";
import { calls, useDetails } from "./details.js";
import { Failure } from "./failure.js";
import { ModelCall } from "./model_call.js";
import { Question } from "./question.js";
import { Tail } from "./tail.js";
import { ToolCall } from "./tool_call.js";

const MOST_SOURCES = 12;
const FAILURES = {
  default: "It failed, and its default was used",
  fallback: "It failed, and its fallback was used",
};

function CancelNode({ source, node }) {
  const [isAsked, setAsked] = useState(false);
  const [isSent, setSent] = useState(false);
  const [error, setError] = useState(null);
  if (node.isEnded || !source.isLive) return null;
  const end = (yes) => {
    setAsked(false);
    if (yes)
      send(source.run.id, { kind: "cancel", node: node.id, value: null }).then(() => setSent(true), setError);
  };
  return html`<button type="button" class="danger" disabled=${isSent} onClick=${() => setAsked(true)}>
      ${isSent ? "cancelling…" : "Cancel node"}</button>
    ${
      isAsked &&
      html`<${Dialog} title="Cancel this node?" confirm="Cancel the node" danger onEnd=${end}>
      <p><bdi>${visible(node.id)}</bdi> ends now, with everything inside it.</p><//>`
    }
    <${Trouble} error=${error} />`;
}

function facts(node, source) {
  const now = source.isLive ? source.now : source.run.now;
  const spent = (doing) => node.spent(doing, now);
  const found = [];
  if (node.began !== null) found.push(["started", `after ${duration(node.began)}`]);
  for (const [doing, label] of [
    ["work", "worked"],
    ["children", "waited for what is inside"],
    ["delay", "waited to retry"],
    ["person", "waited for a person"],
  ])
    if (spent(doing) > 0) found.push([label, duration(spent(doing))]);
  if (node.attempts > 1) found.push(["attempts", number(node.attempts)]);
  if (node.tokens[0] || node.tokens[1])
    found.push(["tokens", `${number(node.tokens[0])} prompt, ${number(node.tokens[1])} generated`]);
  if (node.money) found.push(["cost", money(node.money)]);
  if (node.via) found.push(["instead of its work", node.via]);
  if (node.recalled) found.push(["recalled", "an earlier part of the run had come to it"]);
  if (node.resource) found.push(["slot of", visible(node.resource)]);
  if (node.inside.total)
    found.push([
      "inside",
      `${number(node.inside.ended)} of ${number(node.inside.total)} ended, ${number(node.inside.failed)} failed`,
    ]);
  if (node.sources.length)
    found.push([
      "waits for",
      visible(node.sources.slice(0, MOST_SOURCES).join(", ")) +
        (node.sources.length > MOST_SOURCES ? ` and ${number(node.sources.length - MOST_SOURCES)} more` : ""),
    ]);
  return found;
}

function Streamed({ node }) {
  if (!node.text) return null;
  return html`<section><h3>${node.isEnded ? "Streamed" : "Streaming"} <small>${number(node.streamed)} tokens</small></h3>
    <${Tail} text=${node.text} label="Streamed text" isLost=${node.textLost} isLive=${!node.isEnded} /></section>`;
}

function Result({ run, record }) {
  const value = record?.outcome.value;
  if (!value) return null;
  return html`<section><h3>Result ${value.json && html`<small>JSON</small>`}</h3>
    <${Text} text=${value.text} cut=${record.cut?.["outcome.value"]} run=${run.id} seq=${record.seq} field="outcome.value" label="Result" /></section>`;
}

function Logs({ node }) {
  if (!node.logs.length) return null;
  return html`<section><h3>Log</h3><ul class="logs">${node.logs.map(
    ([at, text]) =>
      html`<li><span class="at">${duration(at)}</span> <span dir="auto">${visible(text)}</span></li>`,
  )}</ul></section>`;
}

export function NodePanel({ source, node, onClose }) {
  const { run } = source;
  const { records, earlier, showEarlier, error } = useDetails(run, node);
  const models = calls(records, "ModelCalled", "ModelAnswered");
  const tools = calls(records, "ToolCalled", "ToolReturned");
  const end = records.findLast((record) => record.event === "NodeFinished");
  const failed = records.filter((record) => ["NodeRepairing", "NodeRetrying", "NodeRerouted"].includes(record.event));
  const key = (event) => {
    if (event.key === "Escape" && !event.defaultPrevented) {
      onClose();
      document.querySelector(".view [tabindex='0']")?.focus();
    }
  };
  return html`<aside class="node" aria-label="Node" onKeyDown=${key}>
    <header><h2><bdi>${visible(node.id)}</bdi></h2>
      <button type="button" class="quiet" aria-label="Close" title="Close (Escape)" onClick=${onClose}>×</button></header>
    <p class="line"><${State} of=${stateOf(node, source.isLive)} />${isUnsure(node, source.isLive) && html`<span class="state unsure">effect unknown</span>`}
      <span class="kind">${visible(node.kind)}</span>
      <span class="gap"></span><${CancelNode} source=${source} node=${node} /></p>
    <${Trouble} error=${error} />
    ${node.question && html`<${Question} source=${source} node=${node} record=${records.find(({ seq }) => seq === node.question.seq)} />`}
    ${end?.outcome.failure && html`<section><h3>${FAILURES[end.outcome.via] ?? "Failure"}</h3><${Failure} failure=${end.outcome.failure} /></section>`}
    ${
      failed.length > 0 &&
      html`<section><h3>Earlier attempts</h3>${failed.map(
        (record) => html`<div key=${record.seq}>
      <p class="note">${record.event === "NodeRepairing" ? `answer ${record.number} did not fit, the model was asked again` : record.event === "NodeRetrying" ? `attempt ${record.attempt}, repeated after ${duration(record.delay_s)}` : html`<bdi>${visible(record.to)}</bdi> took its place`}</p>
      <${Failure} failure=${record.failure} /></div>`,
      )}</section>`
    }
    ${earlier > 0 && html`<p class="note"><button type="button" class="link" onClick=${showEarlier}>Show earlier records (${number(earlier)})</button></p>`}
    ${models.map((call) => html`<${ModelCall} key=${call.key} run=${run} node=${node} call=${call} />`)}
    ${tools.map((call) => html`<${ToolCall} key=${call.key} run=${run} call=${call} isEnded=${node.isEnded} />`)}
    ${!models.length && html`<${Streamed} node=${node} />`}
    <${Decoded} records=${records} />
    <${Result} run=${run} record=${end} />
    <${Logs} node=${node} />
    <section><h3>Facts</h3><dl class="facts">${facts(node, source).map(
      ([label, value]) => html`<div><dt>${label}</dt><dd><bdi>${value}</bdi></dd></div>`,
    )}</dl></section>
  </aside>`;
}
