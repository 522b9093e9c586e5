// The one place that knows which library draws. Strings become text nodes, never markup.
import { Component, h, render } from "../vendor/preact.mjs";
import htm from "../vendor/htm.mjs";

export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.mjs";
export { Component, render };
export const html = htm.bind(h);

/** Class names of those whose condition holds: classes("row", [picked, "picked"]). */
export const classes = (...names) =>
  names
    .map((name) => (Array.isArray(name) ? (name[0] ? name[1] : "") : name))
    .filter(Boolean)
    .join(" ");
