// Talks to the server. The key comes with the address and is kept for this origin only.

const STORED = "weft.key";

/** Take the key out of the address, so that nobody reads it from the screen or copies it. */
export function takeKey() {
  const found = /^#key=([\w-]+)$/.exec(location.hash);
  if (!found) return;
  localStorage.setItem(STORED, found[1]);
  history.replaceState(null, "", "#/");
}

/** What the server refused, with its hint. `status` 0: it cannot be reached. */
export class Refusal extends Error {
  constructor(status, message, hint) {
    super(message);
    this.status = status;
    this.hint = hint;
  }
}

/** A response that is fine. Throws: `Refusal`. */
export async function ask(path, options = {}) {
  const headers = { authorization: `Bearer ${localStorage.getItem(STORED) || ""}`, ...options.headers };
  let response;
  try {
    response = await fetch(path, { ...options, headers, credentials: "omit", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "the server cannot be reached", "is `weft ui` still running?");
  }
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  throw new Refusal(response.status, said.message || `status ${response.status}`, said.hint);
}

export const get = async (path, options) => (await ask(path, options)).json();

/** Leave a letter for the process that has the run. */
export const send = (run, letter) =>
  ask(about("letters", run), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(letter),
  });

/** The path of what there is of a run. */
export const about = (what, run, query = {}) => `/api/${what}?${new URLSearchParams({ run, ...query })}`;

/** Save what the server has at `path` as a file of plain text. */
export async function save(path, name) {
  const response = await ask(path);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = `${name.replace(/[^\w.-]+/g, "-").slice(0, 120)}.txt`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
