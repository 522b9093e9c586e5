// Calls that must not be repeated and whose end nobody knows: the run stands still until a person
// says of each what became of it. The server checks what is said.
import { html, useEffect, useState } from "../base/html.js";
import { about, get, send } from "../base/api.js";
import { Text, Trouble } from "../base/parts.js";
import { amend } from "../base/route.js";
import { line, visible } from "../base/visible.js";
import { amount, number } from "../base/words.js";
import { Failure } from "../node/failure.js";

const LEAVE = "leave";
const CHOICES = [
  ["done", "It was carried out", "the run goes on with what it returned"],
  ["repeat", "It was not, or may be repeated", "it is called again"],
  [LEAVE, "Leave it open", "it is neither called nor taken for done: its node fails"],
];

/** The calls of a run that no process has. Asked for again when the run has changed. */
function useCalls(source) {
  const { run } = source;
  const [found, setFound] = useState({ calls: [], count: 0 });
  const [error, setError] = useState(null);
  const mayHave = run.loaded && !source.isLive && run.onces > 0 && source.standing !== "succeeded";
  useEffect(() => {
    if (!mayHave) {
      setFound({ calls: [], count: 0 });
      return undefined;
    }
    const abort = new AbortController();
    get(about("unsettled", run.id), { signal: abort.signal }).then(
      (told) => {
        setFound(told);
        setError(null);
      },
      (failed) => failed.name === "AbortError" || setError(failed),
    );
    return () => abort.abort();
  }, [run.id, run.last, mayHave]);
  return { ...found, error };
}

function returned(draft) {
  if (draft.trim() === "") return null;
  try {
    return JSON.parse(draft);
  } catch {
    throw new Error("what it returned is not JSON: texts stand in double quotes");
  }
}

function why(call) {
  if (call.lost) return "It was carried out, but what it returned could not be kept.";
  if (call.failure) return "It failed on the way, and may have acted before.";
  return "Its process ended before it returned.";
}

function Choice({ id, value, label, note, chosen, onChoose, isFixed }) {
  return html`<label class="word"><input type="radio" name=${`${id}-word`} value=${value} checked=${chosen === value}
    disabled=${isFixed} aria-describedby=${`${id}-${value}`} onChange=${() => onChoose(value)} />
    <span>${label}</span> <small id=${`${id}-${value}`}>${note}</small></label>`;
}

function Call({ run, call }) {
  const id = `unsettled-${call.seq}`;
  const [word, setWord] = useState(LEAVE);
  const [draft, setDraft] = useState("");
  const [sent, setSent] = useState(null); // the last word that was sent: it counts
  const [error, setError] = useState(null);
  const choose = (value) => {
    setWord(value);
    setError(null);
  };
  const said = word === "done" ? `done:${draft.trim()}` : word;
  const submit = async (event) => {
    event.preventDefault();
    if (sent === said) return;
    try {
      const letter = { kind: "confirm", node: call.node, call: call.seq, value: word };
      await send(run.id, word === "done" ? { ...letter, returned: returned(draft) } : letter);
      setError(null);
      setSent(said);
    } catch (failed) {
      setError(failed);
    }
  };
  return html`<form class="unsettled-call" onSubmit=${submit}><fieldset>
    <legend><bdi>${line(call.tool, 80)}</bdi> <small>in${" "}
      <button type="button" class="link" onClick=${() => amend({ node: call.node })}><bdi>${line(call.node, 60)}</bdi></button></small></legend>
    <p class="note">${why(call)}</p>
    <${Text} text=${call.arguments.text} cut=${call.cut?.arguments} run=${run.id} seq=${call.seq} field="arguments" label="Called with" />
    ${call.failure && html`<${Failure} failure=${call.failure} />`}
    ${CHOICES.map(
      ([value, label, note]) =>
        html`<${Choice} key=${value} ...${{ id, value, label, note }} chosen=${word} onChoose=${choose} isFixed=${value === LEAVE && sent !== null} />`,
    )}
    ${
      word === "done" &&
      html`<div class="field"><label for=${`${id}-value`}>What it returned, as JSON <small>nothing: null</small></label>
      <textarea id=${`${id}-value`} rows="2" class="code" spellcheck="false" value=${draft} onInput=${(event) => setDraft(event.target.value)}></textarea></div>`
    }
    <${Trouble} error=${error} />
    <p class="told"><button type="submit" class="primary" disabled=${word === LEAVE} aria-disabled=${sent === said}>${sent === said ? "told" : "Tell the run"}</button>
      <span role="status">${sent !== null && html`It goes on with <code>weft resume ${visible(run.id)}</code>; the last word counts.`}</span></p>
  </fieldset></form>`;
}

export function Unsettled({ source }) {
  const { calls, count, error } = useCalls(source);
  const { run } = source;
  if (!count) return html`<${Trouble} error=${error} />`;
  return html`<section class="unsettled" aria-labelledby="unsettled-head">
    <h2 id="unsettled-head" role="status">Nobody knows whether ${amount(count, "call")} ${count === 1 ? "was" : "were"} carried out</h2>
    <p class="note">The run stands still there: ${count === 1 ? "it" : "each"} must not be made twice. Find out, and say so.</p>
    <${Trouble} error=${error} />
    ${calls.map((call) => html`<${Call} key=${call.seq} run=${run} call=${call} />`)}
    ${count > calls.length && html`<p class="note">and ${number(count - calls.length)} more, when these are settled</p>`}
  </section>`;
}
