// Draws the graph on a canvas: only what is in sight, and only as much of it as can be read.
import { colour } from "../base/theme.js";
import { line } from "../base/visible.js";
import { STATES, duration, number } from "../base/words.js";
import { ALIASES, isUnsure, stateOf } from "../model/state.js";

const READABLE = 0.5; // below this scale no text is drawn
const OUTLINED = 0.12; // below this no edges inside large scopes, and boxes are plain
const MANY_EDGES = 1_500;
const NAMES = [
  "ground",
  "panel",
  "ink",
  "soft",
  "line",
  "accent",
  "queued",
  "working",
  "waiting",
  "delayed",
  "asking",
  "succeeded",
  "substituted",
  "failed",
  "skipped",
  "cancelled",
  "interrupted",
  "scope",
  "edge",
];

export function palette() {
  const found = Object.fromEntries(NAMES.map((name) => [name, colour(name)]));
  for (const [state, name] of Object.entries(ALIASES)) found[state] = found[name];
  return found;
}

/** Returns how many boxes and texts were drawn, for who wants to know what a frame costs. */
export function paint(canvas, picture, view, look) {
  const context = canvas.getContext("2d");
  const ratio = devicePixelRatio || 1;
  const [wide, high] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== wide * ratio || canvas.height !== high * ratio)
    [canvas.width, canvas.height] = [wide * ratio, high * ratio];
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, wide, high);
  context.translate(view.x, view.y);
  context.scale(view.scale, view.scale);
  const sight = {
    left: -view.x / view.scale,
    top: -view.y / view.scale,
    right: (wide - view.x) / view.scale,
    bottom: (high - view.y) / view.scale,
  };
  const seen = inSight(picture, sight);
  const done = { boxes: seen.length, texts: 0, edges: 0 };
  drawScopes(context, picture, seen, view, look, done);
  drawEdges(context, picture, sight, view, look, done);
  drawBoxes(context, picture, seen, view, look, done);
  return done;
}

function inSight({ nodes, x, y, width, height }, sight) {
  const found = [];
  for (let i = 0; i < nodes.length; i++)
    if (
      x[i] < sight.right &&
      y[i] < sight.bottom &&
      x[i] + width[i] > sight.left &&
      y[i] + height[i] > sight.top
    )
      found.push(i);
  return found;
}

function drawScopes(context, picture, seen, view, look, done) {
  const { nodes, x, y, width, height } = picture;
  for (const i of seen) {
    if (!look.open.has(nodes[i].id) || !nodes[i].children.length) continue;
    context.beginPath();
    context.roundRect(x[i], y[i], width[i], height[i], 10);
    context.fillStyle = look.colours.scope;
    context.fill();
    context.lineWidth = nodes[i] === look.selected ? 2.5 / view.scale : 1;
    context.strokeStyle = nodes[i] === look.selected ? look.colours.accent : look.colours.line;
    context.stroke();
    if (view.scale < READABLE * 0.6) continue;
    done.texts += 1;
    title(context, nodes[i], x[i] + 14, y[i] + 25, width[i] - 96, look);
    progress(context, nodes[i], x[i] + width[i] - 72, y[i] + 17, 56, look);
  }
}

function drawEdges(context, picture, sight, view, look, done) {
  const { edges, x, y, width, height } = picture;
  const many = edges.length / 2 > MANY_EDGES;
  if (many && view.scale < OUTLINED) return;
  context.strokeStyle = look.colours.edge;
  context.lineWidth = many ? 0.7 : 1.3;
  context.globalAlpha = many ? 0.35 : 0.9;
  context.beginPath();
  for (let k = 0; k < edges.length; k += 2) {
    const [a, b] = [edges[k], edges[k + 1]];
    const [fromX, fromY, toX, toY] = [x[a] + width[a], y[a] + height[a] / 2, x[b], y[b] + height[b] / 2];
    if (Math.max(fromX, toX) < sight.left || Math.min(fromX, toX) > sight.right) continue;
    if (Math.max(fromY, toY) < sight.top || Math.min(fromY, toY) > sight.bottom) continue;
    const bend = Math.max(18, Math.abs(toX - fromX) / 2);
    context.moveTo(fromX, fromY);
    context.bezierCurveTo(fromX + bend, fromY, toX - bend, toY, toX, toY);
    done.edges += 1;
  }
  context.stroke();
  context.globalAlpha = 1;
}

function drawBoxes(context, picture, seen, view, look, done) {
  const { nodes, x, y, width, height } = picture;
  for (const i of seen) {
    const node = nodes[i];
    if (look.open.has(node.id) && node.children.length) continue;
    const state = stateOf(node, look.isLive);
    if (view.scale < READABLE) {
      context.fillStyle = look.colours[state];
      context.fillRect(x[i], y[i], width[i], height[i]);
    } else {
      done.texts += 2;
      box(context, node, state, x[i], y[i], width[i], height[i], look);
    }
    if (node === look.selected) ring(context, x[i], y[i], width[i], height[i], view, look);
  }
}

function box(context, node, state, x, y, width, height, look) {
  context.beginPath();
  context.roundRect(x, y, width, height, 7);
  context.fillStyle = look.colours.panel;
  context.fill();
  context.strokeStyle = look.colours.line;
  context.lineWidth = 1;
  context.stroke();
  context.beginPath();
  context.roundRect(x, y, 5, height, [7, 0, 0, 7]);
  context.fillStyle = look.colours[state];
  context.fill();
  label(context, node, x + 14, y + 18, width - 22, look, "600 12px");
  context.fillStyle = look.colours.soft;
  context.font = `11px ${look.font}`;
  context.fillText(clipped(context, under(node, state, look), width - 84), x + 14, y + 34);
  if (node.children.length) progress(context, node, x + width - 66, y + 29, 56, look);
  else if (node.began !== null) {
    context.textAlign = "right";
    context.fillText(duration((node.ended ?? look.now) - node.began), x + width - 10, y + 34);
    context.textAlign = "left";
  }
}

/** The kind of a node, or what colour alone should not tell. */
function under(node, state, look) {
  if (isUnsure(node, look.isLive)) return "effect unknown";
  return state in ALIASES ? STATES[state] : node.kind;
}

function ring(context, x, y, width, height, view, look) {
  context.beginPath();
  context.roundRect(x - 2, y - 2, width + 4, height + 4, 9);
  context.strokeStyle = look.colours.accent;
  context.lineWidth = Math.max(2.5, 2.5 / view.scale);
  context.stroke();
}

/** The name of an open scope, and its kind where there is room. */
function title(context, node, x, y, most, look) {
  const name = label(context, node, x, y, most, look, "600 12.5px");
  const left = most - context.measureText(name).width - 8;
  if (left < 24) return;
  context.font = `11px ${look.font}`;
  context.fillStyle = look.colours.soft;
  context.fillText(clipped(context, node.kind, left), x + most - left, y);
}

function label(context, node, x, y, most, look, weight) {
  context.font = `${weight} ${look.font}`;
  context.fillStyle = look.colours.ink;
  const shown = clipped(context, node.name, most);
  context.fillText(shown, x, y);
  return shown;
}

/** How many of the nodes inside have ended, as a bar with the count beside or below it. */
function progress(context, node, x, y, width, look) {
  const { total, ended, failed, substituted, dropped } = node.inside;
  let left = x;
  for (const [name, count] of [
    ["failed", failed],
    ["substituted", substituted],
    ["skipped", dropped],
    ["succeeded", ended - failed - substituted - dropped],
    ["line", total - ended],
  ]) {
    context.fillStyle = look.colours[name];
    context.fillRect(left, y + 8, (width * count) / total, 3);
    left += (width * count) / total;
  }
  context.fillStyle = look.colours.soft;
  context.font = `11px ${look.font}`;
  context.textAlign = "right";
  context.fillText(`${number(ended)} / ${number(total)}`, x + width, y + 3);
  context.textAlign = "left";
}

const clips = new Map();

function clipped(context, text, most) {
  const key = `${context.font}|${most}|${text.slice(0, 200)}`;
  let found = clips.get(key);
  if (found === undefined) {
    found = line(text, 60);
    while (found.length > 2 && context.measureText(found).width > most) found = `${found.slice(0, -2)}…`;
    if (clips.size > 20_000) clips.clear();
    clips.set(key, found);
  }
  return found;
}
