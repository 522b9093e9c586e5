// The stretch of time that the timeline shows: all of it, until somebody zooms or drags.
import { useRef, useState } from "../base/html.js";

const LEAST = 1e-4;
const ROOM = 1.03;

export function useSpan(source, canvas) {
  const all = Math.max(LEAST, source.isLive ? source.now : source.run.now) * ROOM;
  const [own, setOwn] = useState(null);
  const drag = useRef(null);
  const span = own || { from: 0, to: all };
  const within = ({ from, to }) => {
    const width = Math.min(all, Math.max(LEAST, to - from));
    const start = Math.max(0, Math.min(from, all - width));
    return { from: start, to: start + width };
  };
  const zoom = (factor, at = (span.from + span.to) / 2) => {
    const width = (span.to - span.from) * factor;
    const share = (at - span.from) / (span.to - span.from);
    setOwn(within({ from: at - share * width, to: at + (1 - share) * width }));
  };
  const timeAt = (event) => span.from + (event.offsetX / canvas.current.clientWidth) * (span.to - span.from);
  const hands = {
    onPointerDown(event) {
      drag.current = { x: event.clientX, span };
      canvas.current.setPointerCapture(event.pointerId);
    },
    onPointerMove(event) {
      if (!drag.current || Math.abs(event.clientX - drag.current.x) < 4) return;
      const { from, to } = drag.current.span;
      const by = ((drag.current.x - event.clientX) / canvas.current.clientWidth) * (to - from);
      setOwn(within({ from: from + by, to: to + by }));
    },
    onPointerUp() {
      drag.current = null;
    },
    onPointerCancel() {
      drag.current = null;
    },
    onWheel(event) {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(Math.exp(event.deltaY * 0.003), timeAt(event));
    },
  };
  return { span, hands, zoom, fit: () => setOwn(null) };
}
