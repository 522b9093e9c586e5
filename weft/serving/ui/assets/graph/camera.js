// What part of the picture is in sight: `{scale, x, y}`, in pixels of the canvas. Pure.

const SCALES = [0.01, 2.5];
const LARGEST_FIT = 1.15;
const MARGIN = 28;

/** All of the picture, in the middle. */
export function fitted(canvas, { size }) {
  const scale = Math.min(
    LARGEST_FIT,
    (canvas.clientWidth - 2 * MARGIN) / size.width,
    (canvas.clientHeight - 2 * MARGIN) / size.height,
  );
  const kept = Math.max(SCALES[0], scale);
  return {
    scale: kept,
    x: (canvas.clientWidth - size.width * kept) / 2,
    y: (canvas.clientHeight - size.height * kept) / 2,
  };
}

/** The same with the point at `x`, `y` where it was. */
export function zoomed(view, factor, x, y) {
  const scale = Math.min(SCALES[1], Math.max(SCALES[0], view.scale * factor));
  const by = scale / view.scale;
  return { scale, x: x - (x - view.x) * by, y: y - (y - view.y) * by };
}

/** The same, moved as little as it takes to have the box at `place` in sight. */
export function withBox(canvas, view, picture, place) {
  const [left, top] = [picture.x[place] * view.scale + view.x, picture.y[place] * view.scale + view.y];
  const [width, height] = [picture.width[place] * view.scale, picture.height[place] * view.scale];
  const into = (start, length, room) =>
    start < MARGIN ? MARGIN - start : Math.min(0, Math.max(MARGIN - start, room - MARGIN - start - length));
  return {
    ...view,
    x: view.x + into(left, width, canvas.clientWidth),
    y: view.y + into(top, height, canvas.clientHeight),
  };
}
