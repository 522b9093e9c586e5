// A question to a person, and a form for its answer made from the JSON Schema. Other shapes are JSON.
import { html, useEffect, useRef, useState } from "../base/html.js";
import { send } from "../base/api.js";
import { Trouble } from "../base/parts.js";
import { visible } from "../base/visible.js";
import { blank, kindOf, valueOf } from "./answer.js";

function Field({ id, schema, draft, onDraft, isFirst }) {
  const own = useRef(null);
  useEffect(() => {
    if (isFirst) own.current?.focus();
  }, []);
  const props = { id, ref: own, onInput: (event) => onDraft(event.target.value) };
  switch (kindOf(schema)) {
    case "choice":
      return html`<select ...${props} value=${draft} onChange=${props.onInput}><option value="" disabled>choose…</option>
        ${schema.enum.map((choice, i) => html`<option value=${String(i)}>${visible(typeof choice === "string" ? choice : JSON.stringify(choice))}</option>`)}</select>`;
    case "boolean":
      return html`<span class="choice" role="radiogroup" aria-labelledby=${`${id}-label`}>${[
        "true",
        "false",
      ].map(
        (value, i) => html`
        <label><input type="radio" name=${id} ref=${i ? null : own} value=${value} checked=${draft === value} onChange=${props.onInput} /> ${value === "true" ? "yes" : "no"}</label>`,
      )}</span>`;
    case "number":
      return html`<input type="text" inputmode="decimal" ...${props} value=${draft} />`;
    case "text":
      return html`<textarea rows="3" ...${props} value=${draft}></textarea>`;
    default:
      return html`<textarea rows="5" class="code" spellcheck="false" ...${props} value=${draft} placeholder="JSON"></textarea>`;
  }
}

/** The fields of the form: those of an object with plain properties, else one for the whole. */
function fieldsOf(schema) {
  const properties = schema.type === "object" && schema.properties ? Object.entries(schema.properties) : [];
  const isPlain =
    properties.length > 0 && properties.length <= 12 && properties.every(([, one]) => kindOf(one) !== "json");
  return isPlain
    ? properties.map(([name, one]) => ({
        name,
        schema: one,
        required: (schema.required || []).includes(name),
      }))
    : [{ name: "", schema, required: true }];
}

function readSchema(record) {
  try {
    const found = record.schema ? JSON.parse(record.schema.text) : {};
    return found && typeof found === "object" ? found : {};
  } catch {
    return {};
  }
}

function Form({ run, node, record }) {
  const schema = readSchema(record);
  const fields = fieldsOf(schema);
  const [drafts, setDrafts] = useState(() =>
    Object.fromEntries(fields.map((field) => [field.name, blank(field.schema)])),
  );
  const [error, setError] = useState(null);
  const [isSent, setSent] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    try {
      const given = fields
        .filter((field) => field.required || drafts[field.name] !== "")
        .map((field) => [field.name, valueOf(field.schema, drafts[field.name], field.name)]);
      const value = fields[0].name === "" ? given[0][1] : Object.fromEntries(given);
      await send(run.id, { kind: "answer", node: node.id, question: record.seq, value });
      setError(null);
      setSent(true);
    } catch (failed) {
      setError(failed);
    }
  };
  return html`<form onSubmit=${submit}>
    ${fields.map((field, i) => {
      const id = `answer-${i}`;
      return html`<div class="field" key=${field.name}><label id=${`${id}-label`} for=${id}>${field.name ? visible(field.name) : "Your answer"}
        ${field.name && !field.required && html` <small>optional</small>`}</label>
        ${field.schema.description && html`<p class="note" dir="auto">${visible(field.schema.description)}</p>`}
        <${Field} id=${id} schema=${field.schema} draft=${drafts[field.name]} isFirst=${i === 0}
          onDraft=${(draft) => setDrafts((before) => ({ ...before, [field.name]: draft }))} /></div>`;
    })}
    <${Trouble} error=${error} />
    <button type="submit" class="primary" disabled=${isSent}>${isSent ? "sent" : "Answer"}</button></form>`;
}

export function Question({ source, node, record }) {
  const { run } = source;
  return html`<section class="question"><h3>Asks a person</h3>
    <p class="asked" dir="auto">${visible(record?.question ?? node.question.text)}</p>
    ${!source.isLive && html`<p class="note">No process has this run now. The answer waits for <code>weft resume ${visible(run.id)}</code>.</p>`}
    ${record && html`<${Form} key=${record.seq} run=${run} node=${node} record=${record} />`}</section>`;
}
