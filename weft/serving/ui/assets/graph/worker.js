// Lays graphs out beside the page, which stays at hand meanwhile.
import { layout } from "./layout.js";

addEventListener("message", ({ data }) => {
  const { x, y, width, height, size } = layout(data);
  postMessage({ turn: data.turn, x, y, width, height, size }, [
    x.buffer,
    y.buffer,
    width.buffer,
    height.buffer,
  ]);
});
