// From node to node by arrow keys: left and right along edges, else to the nearest box in that
// direction, among those in the picture.

const AHEAD = {
  ArrowLeft: (dx, dy) => [-dx, dy],
  ArrowRight: (dx, dy) => [dx, dy],
  ArrowUp: (dx, dy) => [-dy, dx],
  ArrowDown: (dx, dy) => [dy, dx],
};
const HEAD = 20; // where the title of an open scope is

/** The node that `key` leads to from `node`; the first of all when none is selected. */
export function neighbour(picture, open, node, key) {
  const { nodes, place } = picture;
  const from = node ? place.get(node) : undefined;
  if (from === undefined) return nodes[0] ?? null;
  const joined = along(picture, from, key);
  const found = nearest(picture, open, from, key, joined.length ? joined : nodes.keys());
  return found ?? nodes[joined[0]] ?? null;
}

function along({ edges }, from, key) {
  const [own, other] = { ArrowRight: [0, 1], ArrowLeft: [1, 0] }[key] || [];
  const found = [];
  if (own === undefined) return found;
  for (let k = 0; k < edges.length; k += 2) if (edges[k + own] === from) found.push(edges[k + other]);
  return found;
}

function nearest({ nodes, x, y, width, height }, open, from, key, among) {
  const isOpen = (i) => open.has(nodes[i].id) && nodes[i].children.length > 0;
  const middle = (i) => [x[i] + width[i] / 2, y[i] + (isOpen(i) ? HEAD : height[i] / 2)];
  const [fromX, fromY] = middle(from);
  let best = null;
  let least = Infinity;
  for (const i of among) {
    if (i === from) continue;
    const [toX, toY] = middle(i);
    const [ahead, aside] = AHEAD[key](toX - fromX, toY - fromY);
    const cost = ahead + 2.5 * Math.abs(aside);
    if (ahead > 1 && cost < least) [best, least] = [nodes[i], cost];
  }
  return best;
}
