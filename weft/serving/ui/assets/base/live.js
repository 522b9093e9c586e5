// Hears from the server that the journal changed. Carries no data: who listens asks for what is new.
// `fetch` and not EventSource, which cannot send the key in a header.
import { ask } from "./api.js";

const listeners = new Set();
const states = new Set();
const RETRY_MS = [500, 1_000, 2_000, 5_000];
let abort = null;
export let connected = true;

/** Call `listener` when something changed; returns what ends that. */
export function onChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Call `listener` with whether the server is there; returns what ends that. */
export function onConnection(listener) {
  states.add(listener);
  return () => states.delete(listener);
}

function tell(isConnected) {
  if (connected === isConnected) return;
  connected = isConnected;
  states.forEach((listener) => listener(connected));
}

async function listen(signal) {
  const response = await ask("/api/changes", { signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    tell(true);
    rest += value;
    const events = rest.split("\n\n");
    rest = events.pop();
    if (events.some((event) => event.startsWith("event: change"))) listeners.forEach((heard) => heard());
  }
}

async function keepListening(signal) {
  for (let failed = 0; !signal.aborted; failed = connected ? 1 : failed + 1) {
    try {
      await listen(signal);
    } catch (error) {
      if (signal.aborted || error.status === 401) return;
    }
    tell(false);
    await new Promise((done) => setTimeout(done, RETRY_MS[Math.min(failed, RETRY_MS.length - 1)]));
  }
}

function follow() {
  if (document.hidden) {
    abort?.abort();
    abort = null;
  } else if (!abort) {
    abort = new AbortController();
    keepListening(abort.signal);
  }
}

/** Begin. A page that nobody sees does not listen: browsers allow few connections to a host. */
export function start() {
  document.addEventListener("visibilitychange", follow);
  follow();
}
