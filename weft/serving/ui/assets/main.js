// The page: what stands at its top, and which of its places is shown.
import { html, render, useEffect, useState } from "./base/html.js";
import { takeKey } from "./base/api.js";
import * as live from "./base/live.js";
import { useRoute } from "./base/route.js";
import { ThemeButton } from "./base/theme.js";
import { ComparePage } from "./compare/page.js";
import { EvaluationPage } from "./experiments/evaluation.js";
import { ExperimentsPage } from "./experiments/page.js";
import { StudyPage } from "./experiments/study.js";
import { RunsPage } from "./runs/page.js";
import { RunPage } from "./run/page.js";

function place(steps, query) {
  if (steps[0] === "run" && steps[1])
    return html`<${RunPage} key=${steps[1]} id=${steps[1]} query=${query} />`;
  if (steps[0] === "compare" && steps[2])
    return html`<${ComparePage} key=${steps.join("/")} left=${steps[1]} right=${steps[2]} />`;
  if (steps[0] === "experiments") return html`<${ExperimentsPage} />`;
  if (steps[0] === "evaluation" && steps[1])
    return html`<${EvaluationPage} key=${steps[1]} id=${steps[1]} query=${query} />`;
  if (steps[0] === "study" && steps[1]) return html`<${StudyPage} key=${steps[1]} id=${steps[1]} />`;
  return html`<${RunsPage} />`;
}

function Connection() {
  const [connected, setConnected] = useState(live.connected);
  useEffect(() => live.onConnection(setConnected), []);
  return html`<span class=${`connection ${connected ? "on" : "off"}`} role="status">
    ${connected ? "live" : "not connected"}</span>`;
}

function App() {
  const { steps, query } = useRoute();
  return html`<header class="top">
      <a class="brand" href="#/"><img src="/icon.svg" alt="" width="20" height="20" />weft</a>
      <${Connection} /><${ThemeButton} />
    </header>
    ${place(steps, query)}`;
}

takeKey();
live.start();
render(html`<${App} />`, document.getElementById("app"));
