// The run in numbers, and the reasons for anything but plain success.
import { html } from "../base/html.js";
import { visible } from "../base/visible.js";
import { clock, duration, money, number } from "../base/words.js";
import { counts } from "../model/fold.js";
import { isUnsure } from "../model/state.js";

const MOST_REASONS = 5;

const Figure = ({ label, children, title }) =>
  html`<div title=${title}><dt>${label}</dt><dd>${children}</dd></div>`;

export function Figures({ source }) {
  const { run, timing } = source;
  const nodes = counts(run);
  const unsure = [...run.risky].filter((node) => isUnsure(node, source.isLive)).length;
  const summary = source.header?.summary;
  const reasons = run.reasons.slice(0, MOST_REASONS);
  return html`<dl class="figures">
      <${Figure} label="time">${duration(source.isLive ? source.now : run.now)}<//>
      <${Figure} label="nodes ended">${number(nodes.ended)} / ${number(nodes.total)}<//>
      ${source.isLive && html`<${Figure} label="at work">${number(nodes.working)}<//>`}
      ${nodes.failed > 0 && html`<${Figure} label="failed"><span class="bad">${number(nodes.failed)}</span><//>`}
      ${nodes.substituted > 0 && html`<${Figure} label="by default or fallback" title="Their own work failed">${number(nodes.substituted)}<//>`}
      ${nodes.dropped > 0 && html`<${Figure} label="skipped or cancelled">${number(nodes.dropped)}<//>`}
      ${unsure > 0 && html`<${Figure} label="effects unknown" title="Nobody knows whether they were carried out"><span class="bad">${number(unsure)}</span><//>`}
      <${Figure} label="prompt tokens">${number(run.tokens[0])}<//>
      <${Figure} label="generated">${number(run.tokens[1])}<//>
      ${run.tokens[2] > 0 && html`<${Figure} label="from cache">${number(run.tokens[2])}<//>`}
      ${run.money > 0 && html`<${Figure} label="cost">${money(run.money)}<//>`}
      ${timing?.speed_up && html`<${Figure} label="parallel speed-up" title="Node times over wall time">${timing.speed_up.toFixed(1)}×<//>`}
      ${
        timing?.advice &&
        html`<${Figure} label="speed up first" title="If it took no time, the run would take about so much less"><bdi>${visible(timing.advice.target)}</bdi>
        ${" "}<small>saves about ${duration(timing.advice.saves_s)}, ${Math.round(100 * timing.advice.fraction)} %</small><//>`
      }
      ${run.parts > 1 && html`<${Figure} label="resumed">${number(run.parts - 1)}×<//>`}
      <${Figure} label="began" title=${run.id}>${clock(source.header?.wall || run.wall)}<//>
      ${summary && html`<${Figure} label="run"><bdi class="run-id">${visible(run.id)}</bdi><//>`}
    </dl>
    ${
      reasons.length > 0 &&
      html`<ul class="reasons" aria-label="Why">${reasons.map((reason) => html`<li dir="auto">${visible(reason)}</li>`)}
      ${run.reasons.length > MOST_REASONS && html`<li>and ${number(run.reasons.length - MOST_REASONS)} more</li>`}</ul>`
    }`;
}
