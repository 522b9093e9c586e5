// An error as weft says it: what, why, and what to do about it.
import { html } from "../base/html.js";
import { visible } from "../base/visible.js";

export const Failure = ({ failure }) => html`<div class="failure">
  <p><strong>${visible(failure.error)}</strong>${failure.retryable && html` <small>may succeed when repeated</small>`}</p>
  <p dir="auto" class="message">${visible(failure.message)}</p>
  ${failure.hint && html`<p class="hint" dir="auto">${visible(failure.hint)}</p>`}</div>`;
