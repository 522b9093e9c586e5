// Places the boxes of a graph, scope by scope, from the inside out. Pure: runs in a worker.
// Small scopes with edges are laid out by dagre; large ones in ranks, each a block, in linear time.
import * as dagre from "../vendor/dagre.mjs";

export const BOX = { width: 176, height: 44 };
const GAP = { x: 44, y: 14, block: 10 };
const PAD = { side: 16, top: 40, bottom: 16 };
const MOST_FOR_DAGRE = 120;
const MOST_IN_RANK = 10;
const WIDER = 2.4; // how much wider than high a block should be

/** `{x, y, width, height}` of each node, absolute, and the `size` of all; `parents` come first. */
export function layout({ count, parents, edges }) {
  const x = new Float32Array(count);
  const y = new Float32Array(count);
  const width = new Float32Array(count).fill(BOX.width);
  const height = new Float32Array(count).fill(BOX.height);
  const inside = new Map();
  const within = new Map();
  for (let i = 0; i < count; i++) push(inside, parents[i], i);
  for (let i = 0; i < edges.length; i += 2) push(within, parents[edges[i]], [edges[i], edges[i + 1]]);
  const place = (scope, children) => arrange(children, within.get(scope) || [], { x, y, width, height });
  for (let i = count; i--;) {
    const children = inside.get(i);
    if (!children) continue;
    const size = place(i, children);
    width[i] = Math.max(BOX.width, size.width + 2 * PAD.side);
    height[i] = size.height + PAD.top + PAD.bottom;
  }
  const size = place(-1, inside.get(-1) || []);
  for (let i = 0; i < count; i++)
    if (parents[i] >= 0) {
      x[i] += x[parents[i]] + PAD.side;
      y[i] += y[parents[i]] + PAD.top;
    }
  return { x, y, width, height, size };
}

function push(map, key, item) {
  const list = map.get(key);
  if (list) list.push(item);
  else map.set(key, [item]);
}

function arrange(children, edges, box) {
  if (!edges.length) return shelves(children, 0, box);
  const ranks = ranked(children, edges);
  const narrow = ranks.every((rank) => rank.length <= MOST_IN_RANK);
  if (children.length <= MOST_FOR_DAGRE && narrow) return layered(children, edges, box);
  let left = 0;
  const sizes = ranks.map((rank) => {
    const size = shelves(rank, left, box);
    left += size.width + GAP.x;
    return size;
  });
  const height = Math.max(...sizes.map((size) => size.height));
  ranks.forEach((rank, i) =>
    rank.forEach((child) => {
      box.y[child] += (height - sizes[i].height) / 2;
    }),
  );
  return { width: left - GAP.x, height };
}

/** Children by the longest path that leads to them. */
function ranked(children, edges) {
  const next = new Map();
  const rank = new Map(children.map((child) => [child, 0]));
  const open = new Map(rank);
  for (const [from, to] of edges) {
    push(next, from, to);
    open.set(to, open.get(to) + 1);
  }
  const waiting = children.filter((child) => !open.get(child));
  for (let i = 0; i < waiting.length; i++)
    for (const to of next.get(waiting[i]) || []) {
      rank.set(to, Math.max(rank.get(to), rank.get(waiting[i]) + 1));
      open.set(to, open.get(to) - 1);
      if (!open.get(to)) waiting.push(to);
    }
  const ranks = [];
  for (const child of children) (ranks[rank.get(child)] ??= []).push(child);
  return ranks.filter(Boolean);
}

/** Children in rows from `left` on, in order, about `WIDER` times as wide as high. */
function shelves(children, left, { x, y, width, height }) {
  let area = 0;
  for (const child of children) area += (width[child] + GAP.block) * (height[child] + GAP.block);
  const target = children.length <= 4 ? 0 : Math.sqrt(area * WIDER);
  let [across, top, tallest, widest] = [0, 0, 0, 0];
  for (const child of children) {
    if (across && across + width[child] > target) {
      [across, top, tallest] = [0, top + tallest + GAP.block, 0];
    }
    x[child] = left + across;
    y[child] = top;
    across += width[child] + GAP.block;
    tallest = Math.max(tallest, height[child]);
    widest = Math.max(widest, across - GAP.block);
  }
  return { width: widest, height: top + tallest };
}

function layered(children, edges, { x, y, width, height }) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: GAP.y, ranksep: GAP.x, marginx: 0, marginy: 0 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const child of children) graph.setNode(String(child), { width: width[child], height: height[child] });
  for (const [from, to] of edges) graph.setEdge(String(from), String(to));
  dagre.layout(graph);
  let [right, bottom] = [0, 0];
  for (const child of children) {
    const node = graph.node(String(child));
    x[child] = node.x - width[child] / 2;
    y[child] = node.y - height[child] / 2;
    right = Math.max(right, x[child] + width[child]);
    bottom = Math.max(bottom, y[child] + height[child]);
  }
  return { width: right, height: bottom };
}
