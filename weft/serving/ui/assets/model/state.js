// How nodes and runs stand. Nothing works in a run that no process has; questions wait.
const STAYS = new Set(["queued", "asking"]);
const VIA = { default: "default", fallback: "fallback", cache: "cached" };

/** What a person sees of a node: success that is not the node's own work is not called success. */
export function stateOf(node, isLive) {
  if (node.state === "succeeded") return VIA[node.via] || (node.recalled ? "recalled" : "succeeded");
  if (node.state === "skipped" && node.failure) return "cutoff";
  return isLive || node.isEnded || STAYS.has(node.state) ? node.state : "interrupted";
}

/** Whether something else stands in the place of a result that its own work did not give. */
export const isSubstituted = (state, via) =>
  state === "succeeded" && (via === "default" || via === "fallback");

/** The colours of states that have none of their own. */
export const ALIASES = {
  default: "substituted",
  fallback: "substituted",
  cached: "succeeded",
  recalled: "succeeded",
  cutoff: "skipped",
};

/** Whether nobody knows what became of a call of the node that must not be repeated. */
export const isUnsure = (node, isLive) =>
  [...node.onces.values()].some((done) => done === "unknown" || (done === "" && (node.isEnded || !isLive)));

/** How a run stands: it asks, too, when the process that had it has ended before the answer. */
export function standingOf(summary) {
  if (!summary) return undefined;
  return summary.standing === "interrupted" && summary.asking.length ? "asking" : summary.standing;
}
