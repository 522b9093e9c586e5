// The nodes of a run as the rows of an outline: nested, folded, filtered.
import { isSubstituted } from "./state.js";

const SMALL = 40;

/** What is open at first: scopes at the top whose nodes fit on a screen. */
export function openAtFirst(run) {
  const open = new Set();
  const look = (nodes, depth) => {
    for (const node of nodes)
      if (node.children.length && node.children.length <= SMALL && depth < 2) {
        open.add(node.id);
        look(node.children, depth + 1);
      }
  };
  if (run.nodes.size <= 400) look(run.roots, 0);
  return open;
}

/** All nodes with children. */
export const scopes = (run) =>
  [...run.nodes.values()].filter((node) => node.children.length).map((node) => node.id);

/** `[{node, depth}]` in order. `fits` (or null) picks nodes, which are then shown with those above. */
export function rows(run, open, fits = null) {
  const wanted = fits && withAbove(run, fits);
  const found = [];
  const waiting = run.roots.map((node) => ({ node, depth: 0 })).reverse();
  while (waiting.length) {
    const row = waiting.pop();
    if (wanted && !wanted.has(row.node)) continue;
    found.push(row);
    if (wanted || open.has(row.node.id))
      for (let i = row.node.children.length; i--;)
        waiting.push({ node: row.node.children[i], depth: row.depth + 1 });
  }
  return found;
}

function withAbove(run, fits) {
  const wanted = new Set();
  for (const node of run.nodes.values())
    if (fits(node))
      for (let above = node; above && !wanted.has(above); above = above.parent) wanted.add(above);
  return wanted;
}

const OWN = new Set(["think", "thread"]);

/** The threads of thoughts, each below the one that forked it; its model calls are part of it. */
export function threads(run, fits = null) {
  const found = [];
  const owner = new Map();
  for (const node of run.nodes.values()) {
    const above = node.parent ? owner.get(node.parent) : undefined;
    if (!OWN.has(node.kind)) {
      owner.set(node, above);
      if (above && node.kind === "model") above.calls.push(node);
      continue;
    }
    const row = { node, depth: above ? above.depth + 1 : 0, calls: [], inside: [], above };
    owner.set(node, row);
    (above ? above.inside : found).push(row);
  }
  const flat = [];
  const waiting = found.reverse();
  while (waiting.length) {
    const row = waiting.pop();
    if (!fits || fits(row.node)) flat.push(row);
    waiting.push(...row.inside.slice().reverse());
  }
  return flat;
}

/** A test for nodes: by text in the id or kind, and by state. Null when everything fits. */
export function filter(text, state) {
  const words = text.trim().toLowerCase();
  if (!words && !state) return null;
  return (node) =>
    (!words || node.id.toLowerCase().includes(words) || node.kind.toLowerCase().includes(words)) &&
    (!state || STATES[state](node));
}

const STATES = {
  substituted: (node) => isSubstituted(node.state, node.via),
  active: (node) => ["working", "waiting", "delayed", "asking"].includes(node.state),
  bad: (node) =>
    ["failed", "cancelled", "skipped"].includes(node.state) || isSubstituted(node.state, node.via),
  asking: (node) => node.state === "asking",
};
