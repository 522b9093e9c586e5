// Numbers and states as people read them.

export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 59.995) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  const pad = (number) => String(number).padStart(2, "0");
  if (minutes < 60) return `${minutes} min ${pad(Math.round(seconds) % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} min`;
}

export const number = (value) => Number(value).toLocaleString("en");
export const amount = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
export const percent = (part, whole) => (whole ? `${Math.round((100 * part) / whole)} %` : "–");
export const money = (dollars) => `$${dollars.toFixed(dollars >= 1 ? 2 : 4)}`;

const AGES = [
  [86_400, "day"],
  [3_600, "hour"],
  [60, "minute"],
];

/** How long ago an ISO time was, roughly. */
export function ago(wall, now = Date.now()) {
  const seconds = (now - Date.parse(wall)) / 1000;
  if (!Number.isFinite(seconds)) return "";
  for (const [size, noun] of AGES)
    if (seconds >= size) return `${amount(Math.floor(seconds / size), noun)} ago`;
  return "just now";
}

/** A time of day and its date, in the reader's own zone. */
export function clock(wall) {
  const date = new Date(wall);
  return Number.isNaN(date.getTime())
    ? ""
    : date.toLocaleString("en", { dateStyle: "medium", timeStyle: "medium" });
}

export const STATES = {
  running: "running",
  asking: "asks a person",
  interrupted: "interrupted",
  queued: "queued",
  working: "working",
  waiting: "waiting",
  delayed: "before a retry",
  succeeded: "succeeded",
  default: "default used",
  fallback: "fallback used",
  cached: "from cache",
  recalled: "succeeded earlier",
  partial: "partial",
  failed: "failed",
  skipped: "skipped",
  cutoff: "skipped by a failure",
  cancelled: "cancelled",
};
