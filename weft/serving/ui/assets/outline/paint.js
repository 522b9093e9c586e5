// Draws the bars of the rows in sight, the critical path over them, and the scale of time above.
import { colour } from "../base/theme.js";
import { duration } from "../base/words.js";
import { drawLegend, drawPath, ending, piece } from "./strokes.js";

const BAR = 13;
const STEPS = [1, 2, 5];
// What the strokes call a colour, and what the style sheet does.
const COLOURS = {
  panel: "panel",
  soft: "soft",
  line: "line",
  faint: "faint",
  picked: "picked",
  work: "working",
  failed: "failed",
  cancelled: "cancelled",
  skipped: "skipped",
  default: "substituted",
  person: "asking",
  scope: "children",
  wait: "edge",
  path: "path",
};

export const palette = () =>
  Object.fromEntries(Object.entries(COLOURS).map(([name, own]) => [name, colour(own)]));

/** A canvas made `wide` by `high` pixels of the page, empty. */
function ready(canvas, wide = canvas.clientWidth, high = canvas.clientHeight) {
  const context = canvas.getContext("2d");
  const ratio = devicePixelRatio || 1;
  if (canvas.width !== wide * ratio || canvas.height !== high * ratio)
    [canvas.width, canvas.height] = [wide * ratio, high * ratio];
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, wide, high);
  return { context, wide, high };
}

/** Times worth a mark between `from` and `to`, about 110 pixels apart. */
function ticks({ from, to }, wide) {
  const rough = ((to - from) / wide) * 110;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = (STEPS.find((one) => one * power >= rough) || 10) * power;
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
}

export function paintScale(canvas, span, look) {
  const { context, wide, high } = ready(canvas);
  context.font = `11px ${look.font}`;
  for (const at of ticks(span, wide)) {
    const x = ((at - span.from) / (span.to - span.from)) * wide;
    context.fillStyle = look.colours.line;
    context.fillRect(x, high - 6, 1, 6);
    context.fillStyle = look.colours.soft;
    context.fillText(duration(at), Math.min(x + 3, wide - 50), high - 9);
  }
}

/** What the signs mean, below the rows. */
export function paintLegend(canvas, room, look) {
  const context = canvas.getContext("2d");
  const font = `11px ${look.font}`;
  const open = (wide, high) => {
    Object.assign(canvas.style, { width: `${Math.ceil(wide)}px`, height: `${high}px` });
    const { context: pen } = ready(canvas, Math.ceil(wide), high);
    pen.font = font;
    return pen;
  };
  context.font = font;
  drawLegend((words) => context.measureText(words).width, open, room, look.colours);
}

/**
 * `rows`: those in sight, the first of them at `top` pixels. `timing` has the bars and the path of
 * a run at rest; else a node's phases are drawn. Returns how many steps of the path were drawn.
 */
export function paintBars(canvas, rows, top, rowPx, span, look, timing) {
  const { context, wide, high } = ready(canvas);
  const x = (at) => ((at - span.from) / (span.to - span.from)) * wide;
  context.font = `11px ${look.font}`;
  context.fillStyle = look.colours.faint;
  for (const at of ticks(span, wide)) context.fillRect(x(at), 0, 1, high);
  const middles = new Map();
  rows.forEach(({ node }, i) => {
    const y = top + i * rowPx;
    middles.set(node, y + rowPx / 2);
    if (node === look.selected) {
      context.fillStyle = look.colours.picked;
      context.fillRect(0, y, wide, rowPx);
    }
    row(context, node, timing?.bars.get(node.id), y + rowPx / 2, x, wide, look);
  });
  if (!timing) return 0;
  const where = (id) => {
    const own = look.nodes.get(id);
    for (let at = own; at; at = at.parent)
      if (middles.has(at)) return { middle: middles.get(at), isOwn: at === own };
    return null;
  };
  return drawPath(context, timing.path, x, where, BAR, look.colours.path);
}

const live = ([doing, from, to, failed], now) => [
  doing === "work" && failed ? "failed" : doing,
  from,
  to ?? now,
];

function row(context, node, timed, middle, x, wide, look) {
  const bars = timed ?? node.phases.map((phase) => live(phase, look.now));
  const how = { status: node.isEnded ? node.state : "", via: node.via, attempts: node.attempts };
  for (const [doing, from, to] of bars) {
    const left = Math.max(-10, x(from));
    const right = Math.min(wide + 10, x(to));
    if (right < 0 || left > wide) continue;
    piece(context, how, doing, left, Math.max(1.5, right - left), middle, BAR, look.colours);
  }
  if (node.ended === null) return;
  const begin = bars.length ? bars[0][1] : node.ended;
  ending(context, how, x(node.ended), x(begin), wide, middle, look.colours);
}
