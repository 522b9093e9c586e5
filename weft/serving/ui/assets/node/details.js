// The records of one node in full, asked for as they come; the page at large has them only in brief.
import { useEffect, useRef, useState } from "../base/html.js";
import { about, get } from "../base/api.js";

const MOST = 100; // as many as one request may name

/** `{records, earlier, error, showEarlier}`: the latest records of `node`, in order. */
export function useDetails(run, node) {
  const known = useRef(new Map());
  const [shown, setShown] = useState(MOST);
  const [error, setError] = useState(null);
  const [, redraw] = useState(0);
  const wanted = node.seqs.slice(-shown);
  const missing = wanted.filter((seq) => !known.current.has(seq)).slice(-MOST);
  useEffect(() => {
    if (!missing.length) return undefined;
    const abort = new AbortController();
    get(about("details", run.id, { seqs: missing.join(",") }), { signal: abort.signal }).then(
      (found) => {
        for (const record of found.records) known.current.set(record.seq, record);
        setError(null);
        redraw((before) => before + 1);
      },
      (failed) => failed.name === "AbortError" || setError(failed),
    );
    return () => abort.abort();
  }, [missing.join(",")]);
  return {
    records: wanted.map((seq) => known.current.get(seq)).filter(Boolean),
    earlier: Math.max(0, node.seqs.length - shown),
    showEarlier: () => setShown((before) => before + MOST),
    error,
  };
}

/** The calls among `records`: `[{call, attempt, asked, answer}]` in order. */
export function calls(records, asked, answered) {
  const found = new Map();
  for (const record of records) {
    if (record.event !== asked && record.event !== answered) continue;
    const key = `${record.attempt} ${record.call}`;
    const entry = found.get(key) || { key, call: record.call, attempt: record.attempt };
    entry[record.event === asked ? "asked" : "answer"] = record;
    found.set(key, entry);
  }
  return [...found.values()];
}
