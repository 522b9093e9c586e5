// Where the page is, kept in the part of the address after `#`, so that back and reload work.
//   #/                                 the runs
//   #/run/ID?view=graph&node=NODE      one run
//   #/compare/ID/ID                    two runs
//   #/experiments                      evaluations and studies
//   #/evaluation/ID?baseline=ID        one evaluation
//   #/study/ID                         one study
import { useEffect, useState } from "./html.js";

function read() {
  const [path, query = ""] = location.hash.replace(/^#/, "").split("?");
  const steps = path.split("/").filter(Boolean);
  try {
    return { steps: steps.map(decodeURIComponent), query: Object.fromEntries(new URLSearchParams(query)) };
  } catch {
    return { steps: [], query: {} };
  }
}

/** The address of a place in the page. */
export function address(steps, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value);
  const tail = kept.length ? `?${new URLSearchParams(kept)}` : "";
  return `#/${steps.map(encodeURIComponent).join("/")}${tail}`;
}

export function go(steps, query) {
  location.hash = address(steps, query);
}

/** Change what follows `?` without a step in the history. */
export function amend(changes) {
  const { steps, query } = read();
  history.replaceState(null, "", address(steps, { ...query, ...changes }));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute() {
  const [route, setRoute] = useState(read);
  useEffect(() => {
    const moved = () => setRoute(read());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return route;
}
