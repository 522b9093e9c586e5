// What of a run's graph is in the picture: the nodes of open scopes, and the edges between siblings.
// An edge between nodes of different scopes is drawn between the scopes that tell them apart.

/** `{nodes, place, parents, edges}`: parents as places (-1: none), edges as pairs of places. */
export function scene(run, open) {
  const nodes = [];
  const waiting = run.roots.slice().reverse();
  while (waiting.length) {
    const node = waiting.pop();
    nodes.push(node);
    if (open.has(node.id)) for (let i = node.children.length; i--;) waiting.push(node.children[i]);
  }
  const place = new Map(nodes.map((node, i) => [node, i]));
  const parents = Int32Array.from(nodes, (node) => (node.parent ? place.get(node.parent) : -1));
  return { nodes, place, parents, edges: edges(run, nodes, place) };
}

function edges(run, nodes, place) {
  const found = [];
  const known = new Set();
  for (const node of run.nodes.values())
    for (const id of node.sources) {
      const source = run.nodes.get(id);
      const pair = source && siblings(source, node);
      if (!pair) continue;
      const [from, to] = pair.map((one) => place.get(one));
      const key = from * nodes.length + to;
      if (from === undefined || to === undefined || known.has(key)) continue;
      known.add(key);
      found.push(from, to);
    }
  return Int32Array.from(found);
}

/** The two, or what they are inside of, as children of one scope; null when one holds the other. */
function siblings(one, other) {
  while (one.depth > other.depth) one = one.parent;
  while (other.depth > one.depth) other = other.parent;
  while (one.parent !== other.parent) [one, other] = [one.parent, other.parent];
  return one === other ? null : [one, other];
}
