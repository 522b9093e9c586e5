// One evaluation: its metrics, its cases, and another evaluation that it is compared with.
import { html, useEffect, useState } from "../base/html.js";
import { about } from "../base/api.js";
import { address, amend } from "../base/route.js";
import { line, visible } from "../base/visible.js";
import { ago, duration, money, number } from "../base/words.js";
import { bounds, score, signed, Steps, Table, Top, useFound } from "./parts.js";

const SIZE = 100;

const Comparison = ({ of }) => html`<h2>Against <bdi>${line(of.a, 80)}</bdi></h2>
  <${Table} label="Comparison" head=${["metric", "#before", "#after", "#change", "#95 %", "#p", "", "test", "#lost", "#won"]}
    rows=${Object.entries(of.metrics).map(([name, each]) => [
      html`<bdi>${line(name, 40)}</bdi>`, score(each.a), score(each.b), signed(each.difference.mean),
      bounds(each.difference, signed), each.p.toPrecision(2), each.verdict, each.test,
      number(each.lost), number(each.won),
    ])} />
  ${["p50_s", "p95_s"].map((name) => of[name] && html`<p>${name.slice(0, 3)} of a case: ${signed(of[name].mean, 3)} s (${bounds(of[name], (value) => signed(value, 3))})</p>`)}
  <p>tokens of a case: ${signed(of.tokens.mean, 1)} (${bounds(of.tokens, (value) => signed(value, 1))})</p>
  ${of.notes.map((note) => html`<p class="note">${visible(note)}</p>`)}`;

export function EvaluationPage({ id, query }) {
  const [after, setAfter] = useState(0);
  const baseline = query.baseline || "";
  const [found, error] = useFound(about("evaluation", id, { after, limit: SIZE, ...(baseline && { baseline }) }));
  useEffect(() => {
    document.title = `${line(id, 40)} · weft`;
  }, [id]);
  if (!found) return html`<main id="main" class="experiment" tabindex="-1"><${Top} title="Evaluation" run=${id} error=${error} /></main>`;
  const names = Object.keys(found.metrics);
  const { usage, results } = found;
  const pick = (event) => {
    setAfter(0);
    amend({ baseline: event.target.value });
  };
  const cases = found.cases.map((one) => [
    html`<a href=${address(["run", id], { node: one.node })}><bdi>${line(one.id, 60)}</bdi></a>${found.replicates > 1 ? ` [${one.replicate}]` : ""}`,
    one.status,
    ...names.map((name) => (one.scores[name] === undefined ? "" : score(one.scores[name]))),
    one.change ? `${one.change < 0 ? "lost" : "won"} ${signed(one.change, 3)}` : "",
    duration(one.wall_s), number(one.tokens), one.cost_usd ? money(one.cost_usd) : "",
    html`<bdi>${line(one.why, 160)}</bdi>`,
  ]);
  return html`<main id="main" class="experiment" tabindex="-1">
    <${Top} title=${found.flow} run=${id} error=${error}><a href=${address(["run", id])}>its run</a>
      <label>Baseline <select value=${baseline} onChange=${pick}><option value="">none</option>
        ${found.candidates.map((one) => html`<option value=${one.run}>${line(one.run, 60)}, ${ago(one.wall)}</option>`)}</select></label><//>
    <${Table} label="Metrics" head=${["metric", "#mean", "#95 %", "#cases", "#unscored"]} rows=${names.map((name) => {
      const each = found.metrics[name];
      return [html`<bdi>${line(name, 40)}</bdi>`, score(each.mean), bounds(each), number(each.cases), number(each.unscored)];
    })} />
    <p>${Object.entries(results).filter(([, count]) => count).map(([status, count]) => `${number(count)} ${status}`).join(", ")};
      ${" "}p50 ${duration(found.wall_s.p50)}, p95 ${duration(found.wall_s.p95)};
      ${" "}${number(usage.prompt_tokens + usage.completion_tokens)} tokens, ${money(usage.cost_usd)}</p>
    ${found.comparison && html`<${Comparison} of=${found.comparison} />`}
    <h2>Cases</h2>
    <${Table} label="Cases" head=${["case", "status", ...names.map((name) => `#${line(name, 30)}`), "change", "#time", "#tokens", "#cost", "feedback"]} rows=${cases} />
    <${Steps} after=${after} size=${SIZE} more=${found.more} onMove=${setAfter} />
  </main>`;
}
