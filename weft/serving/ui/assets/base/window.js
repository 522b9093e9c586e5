// Which rows of a long list are in sight. Only those are drawn.
import { useEffect, useState } from "./html.js";

const SPARE = 6;

/** `{first, last, height}` for `count` rows of `rowPx` in the scrolling element of `ref`. */
export function useWindow(ref, count, rowPx) {
  const [seen, setSeen] = useState({ top: 0, view: 600, wide: 0 });
  useEffect(() => {
    const box = ref.current;
    if (!box) return undefined;
    const look = () => setSeen({ top: box.scrollTop, view: box.clientHeight, wide: box.clientWidth });
    const sized = new ResizeObserver(look);
    sized.observe(box);
    box.addEventListener("scroll", look, { passive: true });
    look();
    return () => {
      sized.disconnect();
      box.removeEventListener("scroll", look);
    };
  }, []);
  const most = Math.ceil(seen.view / rowPx) + 2 * SPARE;
  const first = Math.max(0, Math.min(count - most + SPARE, Math.floor(seen.top / rowPx) - SPARE));
  return { first, last: Math.min(count, first + most), height: count * rowPx, ...seen };
}

/** Scroll so that row `place` is in sight. */
export function reveal(box, place, rowPx, headPx = 0) {
  const top = place * rowPx;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + rowPx + headPx > box.scrollTop + box.clientHeight)
    box.scrollTop = top + rowPx + headPx - box.clientHeight;
}
