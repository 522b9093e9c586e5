// The end of a text while it is written.
import { html, useEffect, useRef } from "../base/html.js";
import { visible } from "../base/visible.js";

/** The end of a text that grows: it stays at its end unless somebody scrolled up. */
export function Tail({ text, label, isLost, isLive }) {
  const own = useRef(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    if (isAtEnd.current && isLive) own.current.scrollTop = own.current.scrollHeight;
  }, [text]);
  const scrolled = ({ target }) => {
    isAtEnd.current = target.scrollTop + target.clientHeight >= target.scrollHeight - 8;
  };
  return html`<div class="text">
    <pre ref=${own} class=${isLive ? "live" : ""} tabindex="0" role="group" aria-label=${label} dir="auto" onScroll=${scrolled}>${visible(text)}</pre>
    ${isLost && html`<p class="cut">Only the end is kept here.</p>`}</div>`;
}
