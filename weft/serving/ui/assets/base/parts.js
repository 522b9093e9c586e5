// Small things that several places show.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { about, save } from "./api.js";
import { visible } from "./visible.js";
import { number, STATES } from "./words.js";

export const State = ({ of }) => html`<span class=${`state ${of}`}>${STATES[of] || of}</span>`;

export const Trouble = ({ error }) =>
  error &&
  html`<p class="trouble" role="alert">
  ${visible(error.message)}${error.hint && html` <span class="hint">${visible(error.hint)}</span>`}</p>`;

/**
 * A long text in a box of its own. `cut`: how long it really is (-1: nobody knows). All of it is
 * saved by `onSave`, or as the `field` of a record.
 */
export function Text({ text, cut, run, seq, field, label, onSave, className = "" }) {
  const [error, setError] = useState(null);
  const saveField = () => save(about("text", run, { seq, field }), `${run}-${seq}-${field}`);
  const saveAll = () => (onSave ?? saveField)().then(() => setError(null), setError);
  const length = cut > 0 ? `all ${number(cut)} characters` : "all of it";
  return html`<div class=${`text ${className}`}>
    <pre tabindex="0" role="group" aria-label=${label} dir="auto">${visible(text)}</pre>
    ${
      cut !== undefined &&
      html`<p class="cut">The first ${number(text.length)} characters.${" "}
      <button type="button" class="link" onClick=${saveAll}>Save ${length}</button></p>`
    }
    <${Trouble} error=${error} />
  </div>`;
}

/** A question in front of everything else; `onEnd` is told the button's word, or null. */
export function Dialog({ title, children, confirm, danger, onEnd }) {
  const own = useRef(null);
  useLayoutEffect(() => {
    own.current.showModal();
  }, []);
  return html`<dialog ref=${own} aria-label=${title} onClose=${() => onEnd(own.current?.returnValue === "yes")}
    onCancel=${(event) => {
      event.preventDefault();
      own.current.close("no");
    }}>
    <h2>${title}</h2>${children}
    <div class="buttons">
      <button type="button" onClick=${() => own.current.close("no")}>Back</button>
      <button type="button" class=${danger ? "danger" : "primary"} onClick=${() => own.current.close("yes")}>${confirm}</button>
    </div></dialog>`;
}

/** Redraw at most every `everyMs` while `subscribe` keeps telling of changes. */
export function useRedraw(subscribe, everyMs, inputs) {
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let timer = null;
    const end = subscribe(() => {
      timer ??= setTimeout(() => {
        timer = null;
        setTurn((before) => before + 1);
      }, everyMs);
    });
    return () => {
      clearTimeout(timer);
      end();
    };
  }, inputs);
  return turn;
}
