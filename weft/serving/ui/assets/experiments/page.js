// The evaluations and studies of the journal, the newest first.
import { html, useEffect, useState } from "../base/html.js";
import { address } from "../base/route.js";
import { line } from "../base/visible.js";
import { ago, money, number } from "../base/words.js";
import { bounds, score, Steps, Table, Top, useFound } from "./parts.js";

const SIZE = 20;

export function ExperimentsPage() {
  const [after, setAfter] = useState(0);
  const [found, error] = useFound(`/api/experiments?after=${after}&limit=${SIZE}`);
  useEffect(() => {
    document.title = "Experiments · weft";
  }, []);
  const rows = (found?.experiments || []).map((one) => [
    html`<a href=${address([one.kind, one.run])}><bdi>${line(one.flow, 60)}</bdi></a> <small><bdi>${line(one.run, 60)}</bdi></small>`,
    one.kind,
    html`<bdi>${line(one.data ?? "", 40)}</bdi>`,
    html`<bdi>${line(one.metric ?? "", 40)}</bdi>`,
    one.mean === undefined ? "" : score(one.mean),
    one.mean === undefined ? "" : bounds(one),
    one.cases === undefined ? "" : number(one.cases),
    one.cost_usd ? money(one.cost_usd) : "",
    line(one.trouble ?? one.verdict?.replaceAll("_", " ") ?? "", 90),
    ago(one.wall),
  ]);
  const head = ["workflow", "", "data", "metric", "#mean", "#95 %", "#cases", "#cost", "verdict", "began"];
  return html`<main id="main" class="experiment" tabindex="-1">
    <${Top} title="Experiments" error=${error} />
    ${found && !rows.length && html`<p class="empty">No experiment yet. Recorded evaluations and studies appear here.</p>`}
    ${rows.length > 0 && html`<${Table} head=${head} rows=${rows} label="Experiments" />`}
    <${Steps} after=${after} size=${SIZE} more=${found?.more} onMove=${setAfter} />
  </main>`;
}
