// How a node stands. Nothing works in a run that nobody has.
export const stateOf = (node, isLive) => (isLive || node.isEnded || node.state === "queued" ? node.state : "interrupted");
