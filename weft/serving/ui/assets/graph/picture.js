// The graph with a place for each of its boxes, found by a worker.
import { useEffect, useRef, useState } from "../base/html.js";
import { scene } from "./scene.js";

const WORKER = "/graph/worker.js";
const policy = globalThis.trustedTypes?.createPolicy("weft", {
  createScriptURL(url) {
    if (url !== WORKER) throw new TypeError("only the page's own worker");
    return url;
  },
});
const newWorker = () => new Worker(policy ? policy.createScriptURL(WORKER) : WORKER, { type: "module" });

/** The placed graph of the run, laid out again when it grows or a scope is opened. */
export function usePicture(run, open, grown) {
  const [picture, setPicture] = useState(null);
  const worker = useRef(null);
  const turn = useRef(0);
  useEffect(() => {
    worker.current = newWorker();
    return () => worker.current.terminate();
  }, []);
  useEffect(() => {
    const found = scene(run, open);
    const mine = (turn.current += 1);
    worker.current.onmessage = ({ data }) => {
      if (data.turn === turn.current) setPicture({ ...found, ...data });
    };
    worker.current.postMessage({
      turn: mine,
      count: found.nodes.length,
      parents: found.parents,
      edges: found.edges,
    });
  }, [run, open, grown]);
  return picture;
}
