// One study: its verdict, its front as points with intervals, and what each member changes.
import { html, useEffect, useState } from "../base/html.js";
import { about } from "../base/api.js";
import { address } from "../base/route.js";
import { line, visible } from "../base/visible.js";
import { amount, number } from "../base/words.js";
import { bounds, score, signed, Table, Top, useFound } from "./parts.js";

const [WIDTH, HEIGHT, PAD] = [640, 300, 48];
const figure = (member, objective) => member.figures.find((one) => one.objective === objective);

function scale(values, from, to) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return (value) => from + ((value - low) / (high - low || 1)) * (to - from);
}

function Scatter({ members, improve, picked, onPick }) {
  // across: the first other objective in which members differ
  const others = ["cost", "latency", "quality"].filter((one) => one !== improve);
  const differs = (one) => new Set(members.map((member) => figure(member, one)?.value ?? null)).size > 1;
  const other = others.find(differs) ?? others[0];
  const points = members
    .map((member, place) => ({ member, place, x: figure(member, other), y: figure(member, improve) }))
    .filter(({ x, y }) => typeof x?.value === "number" && typeof y?.value === "number");
  if (!points.length) return html`<p class="note">Nothing was measured that could be drawn.</p>`;
  const span = ({ y }) => [y.value - y.change + y.low, y.value - y.change + y.high];
  const across = scale(points.map(({ x }) => x.value), PAD, WIDTH - PAD);
  const up = scale(points.flatMap((point) => [point.y.value, ...span(point)]), HEIGHT - PAD, PAD);
  return html`<svg class="front" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label="The front">
    <text x=${WIDTH - PAD} y=${HEIGHT - 8} text-anchor="end">${line(points[0].x.name, 20)}</text>
    <text x="8" y="18">${line(points[0].y.name, 20)}, change with 95 % interval</text>
    ${points.map((point) => {
      const [low, high] = span(point).map(up);
      const [x, y] = [across(point.x.value), up(point.y.value)];
      const pick = () => onPick(point.place);
      return html`<g role="button" tabindex="0" aria-label=${line(point.member.name, 80)} aria-pressed=${point.place === picked}
        onClick=${pick} onKeyDown=${(event) => event.key === "Enter" && pick()}>
        <line x1=${x} x2=${x} y1=${low} y2=${high} /><circle cx=${x} cy=${y} r=${point.place === picked ? 8 : 5} />
        <title>${line(point.member.name, 80)}, ${point.y.source}: ${score(point.y.value)} at ${score(point.x.value)}</title></g>`;
    })}</svg>`;
}

export function StudyPage({ id }) {
  const [found, error] = useFound(about("study", id));
  const [picked, setPicked] = useState(0);
  useEffect(() => {
    document.title = `${line(id, 40)} · weft`;
  }, [id]);
  if (!found) return html`<main id="main" class="experiment" tabindex="-1"><${Top} title="Study" run=${id} error=${error} /></main>`;
  const members = [found.baseline, ...found.front];
  const member = members[picked];
  const { verdict } = found;
  return html`<main id="main" class="experiment" tabindex="-1">
    <${Top} title=${found.flow} run=${id} error=${error}><a href=${address(["run", id])}>its run</a><//>
    <p><strong>${verdict.kind.replaceAll("_", " ")}</strong>${" "}${visible(verdict.why)}</p>
    <p class="note">${amount(found.candidates, "candidate")}, ${number(Object.values(found.spend).reduce((sum, one) => sum + one.calls, 0))} model calls,
      ${" "}${number(found.calls_saved)} saved</p>
    <${Scatter} members=${members} improve=${found.improve} picked=${picked} onPick=${setPicked} />
    <label>Member <select value=${picked} onChange=${(event) => setPicked(Number(event.target.value))}>
      ${members.map((one, place) => html`<option value=${place}>${line(one.name, 80)}</option>`)}</select></label>
    <${Table} label="Figures" head=${["figure", "#value", "#change", "#95 %", "source", "#cases"]} rows=${member.figures.map((one) => [
      line(one.name, 40), score(one.value), signed(one.change), bounds(one, signed), one.source, number(one.cases),
    ])} />
    ${member.edits.length > 0 && html`<h2>Edits</h2><ul>${member.edits.map((one) => html`<li><bdi>${visible(one.label)}</bdi> <small>${visible(one.why)}</small></li>`)}</ul>`}
    ${member.diff && html`<h2>Diff</h2><pre tabindex="0" role="group" aria-label="Diff">${visible(member.diff)}</pre>`}
  </main>`;
}
