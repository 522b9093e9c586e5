// How several tokens were written a step: drafts that held, by depth; or passes that filled in.
import { html } from "../base/html.js";
import { visible } from "../base/visible.js";
import { number, percent } from "../base/words.js";

const Bar = ({ label, part, whole, title }) => html`<div class="meter" title=${title}><span>${label}</span>
  <span class="track"><span class="fill" style=${{ width: `${whole ? Math.min(100, (100 * part) / whole) : 0}%` }}></span></span>
  <span class="num">${percent(part, whole)}</span></div>`;

function Drafted({ how }) {
  const perStep = how.forwards ? ((how.accepted + how.forwards) / how.forwards).toFixed(2) : "–";
  return html`<p class="note"><strong>${visible(how.method)}</strong>: ${number(how.drafted)} tokens drafted, ${number(how.accepted)} kept,${" "}
      ${number(how.forwards)} passes, ${perStep} tokens a pass${how.lossless ? ", lossless" : ", lossy"}</p>
    <${Bar} label="kept" part=${how.accepted} whole=${how.drafted} />
    ${how.tested.map(
      (
        tested,
        depth,
      ) => html`<${Bar} key=${depth} label=${`depth ${depth + 1}`} part=${how.held[depth] || 0} whole=${tested}
      title=${`${number(how.held[depth] || 0)} of ${number(tested)}`} />`,
    )}
    ${how.fallback && html`<p class="note">given up: ${visible(how.fallback)}</p>`}`;
}

function Filled({ how }) {
  const perPass = how.forwards ? (how.kept / how.forwards).toFixed(2) : "–";
  return html`<p class="note"><strong>${visible(how.method)}</strong>: ${number(how.kept)} tokens in ${number(how.forwards)} passes,${" "}
      ${perPass} tokens a pass, ${number(how.blocks)} blocks${how.edits ? `, ${number(how.edits)} edits` : ""}${how.remasks ? `, ${number(how.remasks)} taken back` : ""}</p>
    ${how.by_kind.map(([kind, count]) => html`<${Bar} key=${kind} label=${visible(kind)} part=${count} whole=${how.forwards} title=${number(count)} />`)}`;
}

export function Decoded({ records }) {
  const found = records.filter(({ event }) => event === "NodeDecoded" || event === "NodeDenoised");
  if (!found.length) return null;
  return html`<section><h3>Decoding</h3>${found.slice(-8).map(
    (record) => html`<div key=${record.seq}>
    ${record.speculated ? html`<${Drafted} how=${record.speculated} />` : html`<${Filled} how=${record.denoised} />`}</div>`,
  )}</section>`;
}
