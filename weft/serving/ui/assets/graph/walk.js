// From node to node by arrow keys: to the nearest box in that direction, among those in the picture.

const AHEAD = {
  ArrowLeft: (dx, dy) => [-dx, dy],
  ArrowRight: (dx, dy) => [dx, dy],
  ArrowUp: (dx, dy) => [-dy, dx],
  ArrowDown: (dx, dy) => [dy, dx],
};

/** The node that `key` leads to from `node`; the first of all when none is selected. */
export function neighbour({ nodes, place, x, y, width, height }, open, node, key) {
  const from = node && place.get(node);
  if (from === undefined || from === null) return nodes[0] ?? null;
  const middle = (i) => [x[i] + width[i] / 2, y[i] + (isOpen(nodes[i], open) ? 20 : height[i] / 2)];
  const [fromX, fromY] = middle(from);
  let best = null;
  let least = Infinity;
  for (let i = 0; i < nodes.length; i++) {
    if (i === from) continue;
    const [toX, toY] = middle(i);
    const [ahead, aside] = AHEAD[key](toX - fromX, toY - fromY);
    const cost = ahead + 2.5 * Math.abs(aside);
    if (ahead > 1 && cost < least) [best, least] = [nodes[i], cost];
  }
  return best;
}

const isOpen = (node, open) => open.has(node.id) && node.children.length > 0;
