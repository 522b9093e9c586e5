// How nodes and runs stand. Nothing works in a run that no process has; questions wait.
const STAYS = new Set(["queued", "asking"]);

export const stateOf = (node, isLive) =>
  isLive || node.isEnded || STAYS.has(node.state) ? node.state : "interrupted";

/** How a run stands: it asks, too, when the process that had it has ended before the answer. */
export function standingOf(summary) {
  if (!summary) return undefined;
  return summary.standing === "interrupted" && summary.asking.length ? "asking" : summary.standing;
}
