// Draws the bars of the rows in sight, and the scale of time above them.
import { colour } from "../base/theme.js";
import { duration } from "../base/words.js";

const NAMES = [
  "ink",
  "soft",
  "line",
  "accent",
  "working",
  "failed",
  "delayed",
  "asking",
  "children",
  "picked",
  "faint",
];
const STEPS = [1, 2, 5];

export const palette = () => Object.fromEntries(NAMES.map((name) => [name, colour(name)]));

function ready(canvas) {
  const context = canvas.getContext("2d");
  const ratio = devicePixelRatio || 1;
  const [wide, high] = [canvas.clientWidth, canvas.clientHeight];
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

/** `rows`: those in sight, the first of them at `top` pixels. */
export function paintBars(canvas, rows, top, rowPx, span, look) {
  const { context, wide, high } = ready(canvas);
  const x = (at) => ((at - span.from) / (span.to - span.from)) * wide;
  context.fillStyle = look.colours.faint;
  for (const at of ticks(span, wide)) context.fillRect(x(at), 0, 1, high);
  rows.forEach(({ node }, i) => {
    const y = top + i * rowPx;
    if (node === look.selected) {
      context.fillStyle = look.colours.picked;
      context.fillRect(0, y, wide, rowPx);
    }
    for (const phase of node.phases) bar(context, phase, y, rowPx, x, wide, look);
    if (node.ended !== null) mark(context, node, x(node.ended), y, rowPx, look);
  });
}

function bar(context, [doing, from, to, failed], y, rowPx, x, wide, look) {
  const left = Math.max(-4, x(from));
  const right = Math.min(wide + 4, x(to ?? look.now));
  if (right < 0 || left > wide) return;
  const width = Math.max(1.5, right - left);
  const thin = doing === "children" || doing === "delay";
  const fill = {
    work: failed ? "failed" : "working",
    children: "children",
    delay: "delayed",
    person: "asking",
  }[doing];
  context.fillStyle = look.colours[fill];
  context.beginPath();
  const inset = thin ? rowPx / 2 - 2 : 5;
  context.roundRect(left, y + inset, width, rowPx - 2 * inset, Math.min(3, width / 2));
  context.fill();
}

function mark(context, node, x, y, rowPx, look) {
  if (node.state !== "failed") return;
  context.strokeStyle = look.colours.failed;
  context.lineWidth = 1.8;
  context.beginPath();
  const middle = y + rowPx / 2;
  for (const sign of [1, -1]) {
    context.moveTo(x + 3, middle - 4 * sign);
    context.lineTo(x + 11, middle + 4 * sign);
  }
  context.stroke();
}
