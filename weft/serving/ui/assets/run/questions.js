// What the run asks people, at the top of its page. Each form is in the panel of its node.
import { html } from "../base/html.js";
import { amend } from "../base/route.js";
import { line } from "../base/visible.js";
import { number } from "../base/words.js";

const MOST = 3;

export function Questions({ source }) {
  const asking = [...source.run.asking];
  if (!asking.length || source.run.status) return null;
  return html`<section class="questions" aria-label="Questions" role="status">
    ${asking.slice(0, MOST).map(
      (node) => html`<p key=${node.id}><strong><bdi>${line(node.id, 60)}</bdi></strong>
      <span dir="auto">${line(node.question?.text || "", 160)}</span>
      <button type="button" class="primary" onClick=${() => amend({ node: node.id })}>Answer</button></p>`,
    )}
    ${asking.length > MOST && html`<p>and ${number(asking.length - MOST)} more</p>`}
  </section>`;
}
