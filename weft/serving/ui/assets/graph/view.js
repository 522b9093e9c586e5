// The graph: a canvas that is dragged, zoomed and walked by keyboard.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../base/html.js";
import { useTheme } from "../base/theme.js";
import { line } from "../base/visible.js";
import { STATES, amount } from "../base/words.js";
import { stateOf } from "../model/state.js";
import { fitted, withBox, zoomed } from "./camera.js";
import { paint, palette } from "./paint.js";
import { usePicture } from "./picture.js";
import { neighbour } from "./walk.js";

export function GraphView({ source, open, setOpen, selected, onSelect, turn }) {
  const { run } = source;
  const canvas = useRef(null);
  const theme = useTheme();
  const colours = useMemo(palette, [theme]);
  const [view, setView] = useState({ scale: 1, x: 0, y: 0 });
  const [own, setOwn] = useState(false); // the person has moved the picture
  const [size, setSize] = useState(0);
  const drag = useRef(null);
  const picture = usePicture(run, open, run.grown);
  const font = useMemo(() => getComputedStyle(document.body).fontFamily, []);

  useEffect(() => {
    const sized = new ResizeObserver(() => setSize((before) => before + 1));
    if (canvas.current) sized.observe(canvas.current); // the view may be gone before its effects run
    return () => sized.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (picture && !own && canvas.current) setView(fitted(canvas.current, picture));
  }, [picture, size, own]);
  useEffect(() => {
    if (!picture) return undefined;
    const frame = requestAnimationFrame(() => {
      const look = { colours, open, selected, font, isLive: source.isLive, now: source.now };
      if (!canvas.current) return;
      const done = paint(canvas.current, picture, view, look);
      Object.assign(canvas.current.dataset, {
        boxes: done.boxes,
        texts: done.texts,
        nodes: picture.nodes.length,
      });
    });
    return () => cancelAnimationFrame(frame);
  }, [picture, view, colours, selected, size, turn, open]);
  useEffect(() => {
    const place = picture && selected ? picture.place.get(selected) : undefined;
    const box = canvas.current;
    if (place !== undefined && own && box) setView((before) => withBox(box, before, picture, place));
  }, [selected, picture]);

  const move = (next) => {
    setOwn(true);
    setView(next);
  };
  const middle = () => [canvas.current.clientWidth / 2, canvas.current.clientHeight / 2];
  const zoom = (factor, at = middle()) => move((before) => zoomed(before, factor, ...at));
  const toggle = (node) => {
    if (!node?.children.length) return;
    const next = new Set(open);
    if (!next.delete(node.id)) next.add(node.id);
    setOpen(next);
  };
  const under = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const [x, y] = [
      (event.clientX - box.left - view.x) / view.scale,
      (event.clientY - box.top - view.y) / view.scale,
    ];
    for (let i = picture ? picture.nodes.length : 0; i--;)
      if (
        x >= picture.x[i] &&
        y >= picture.y[i] &&
        x <= picture.x[i] + picture.width[i] &&
        y <= picture.y[i] + picture.height[i]
      )
        return picture.nodes[i];
    return null;
  };
  const pointer = {
    onPointerDown(event) {
      drag.current = { x: event.clientX, y: event.clientY, moved: false };
      canvas.current.setPointerCapture(event.pointerId);
    },
    onPointerMove(event) {
      const from = drag.current;
      if (!from) return;
      const [x, y] = [event.clientX - from.x, event.clientY - from.y];
      if (!from.moved && Math.hypot(x, y) < 4) return;
      drag.current = { x: event.clientX, y: event.clientY, moved: true };
      move((before) => ({ ...before, x: before.x + x, y: before.y + y }));
    },
    onPointerUp(event) {
      if (drag.current && !drag.current.moved) onSelect(under(event));
      drag.current = null;
    },
    onPointerCancel() {
      drag.current = null;
    },
    onDblClick(event) {
      toggle(under(event));
    },
  };
  useEffect(() => {
    const box = canvas.current;
    if (!box) return undefined;
    const wheel = (event) => {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey)
        zoom(Math.exp(-event.deltaY * 0.004), [event.offsetX, event.offsetY]);
      else move((before) => ({ ...before, x: before.x - event.deltaX, y: before.y - event.deltaY }));
    };
    box.addEventListener("wheel", wheel, { passive: false });
    return () => box.removeEventListener("wheel", wheel);
  }, []);
  const key = (event) => {
    const actions = {
      "+": () => zoom(1.3),
      "=": () => zoom(1.3),
      "-": () => zoom(1 / 1.3),
      0: () => setOwn(false),
      Enter: () => toggle(selected),
      " ": () => toggle(selected),
      Escape: () => onSelect(null),
    };
    const step = event.key.startsWith("Arrow") && picture && neighbour(picture, open, selected, event.key);
    if (step) onSelect(step);
    else if (actions[event.key]) actions[event.key]();
    else return;
    event.preventDefault();
  };
  const said = selected
    ? `${line(selected.id, 120)}, ${line(selected.kind, 40)}, ${STATES[stateOf(selected, source.isLive)]}`
    : "";
  return html`<div class="graph">
    <canvas ref=${canvas} tabindex="0" role="application" ...${pointer} onKeyDown=${key} aria-describedby="graph-said"
      aria-label="Graph of the run. Arrow keys go from node to node, Enter opens or closes what is inside, plus and minus zoom, zero shows everything. The timeline has the same nodes as rows."></canvas>
    <p id="graph-said" class="unseen" role="status">${said}</p>
    <div class="tools">
      <button type="button" onClick=${() => zoom(1 / 1.3)} aria-label="Zoom out" title="Zoom out (−)">−</button>
      <button type="button" onClick=${() => zoom(1.3)} aria-label="Zoom in" title="Zoom in (+)">+</button>
      <button type="button" onClick=${() => setOwn(false)} title="Show everything (0)">Fit</button>
    </div>
    ${picture && html`<p class="corner">${amount(picture.nodes.length, "box").replace(/boxs$/, "boxes")} for ${amount(run.nodes.size, "node")}</p>`}
  </div>`;
}
