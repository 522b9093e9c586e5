// The nodes of two runs by id, in the order of the first run, and where they differ.
import { rows as nested } from "../model/rows.js";

const failed = ({ failure }) => (failure ? `${failure.error} ${failure.message}` : "");

/** `[{id, one, other, same}]`; `same` is null where one has no end, or nobody can tell. */
export function pairs(first, second) {
  const found = [];
  const seen = new Set();
  const add = (id) => {
    if (seen.has(id)) return;
    seen.add(id);
    const [one, other] = [first.nodes.get(id) || null, second.nodes.get(id) || null];
    const known = one?.isEnded && other?.isEnded && one.mark && other.mark;
    found.push({
      id,
      one,
      other,
      same: known ? one.mark === other.mark && failed(one) === failed(other) : null,
    });
  };
  for (const run of [first, second]) for (const { node } of nested(run, { has: () => true })) add(node.id);
  return found;
}

export const differs = ({ one, other, same }) =>
  !one || !other || one.state !== other.state || one.via !== other.via || same === false;
