// Light or dark: the system's choice until somebody chooses here.
import { html, useEffect, useState } from "./html.js";

const STORED = "weft.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const watchers = new Set();

function now() {
  return localStorage.getItem(STORED) || (dark.matches ? "dark" : "light");
}

function apply() {
  document.documentElement.dataset.theme = now();
  watchers.forEach((watcher) => watcher(now()));
}

dark.addEventListener("change", apply);
apply();

/** The theme in use; redraws when it changes. */
export function useTheme() {
  const [theme, setTheme] = useState(now);
  useEffect(() => {
    watchers.add(setTheme);
    return () => watchers.delete(setTheme);
  }, []);
  return theme;
}

/** A colour of the style sheets, for a canvas. */
export const colour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

export function ThemeButton() {
  const theme = useTheme();
  const other = theme === "dark" ? "light" : "dark";
  const change = () => {
    localStorage.setItem(STORED, other);
    apply();
  };
  return html`<button type="button" class="quiet" onClick=${change} title=${`Use ${other} colours`}
    aria-label=${`Use ${other} colours`}><span aria-hidden="true">${theme === "dark" ? "☀" : "☾"}</span></button>`;
}
