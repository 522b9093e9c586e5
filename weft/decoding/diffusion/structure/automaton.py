"""Deterministic automata over bytes, with one counter. Knows no tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

DEAD: Final = 0
START: Final = 1


@dataclass(frozen=True, slots=True, eq=False)
class Automaton:
    """State 0 is dead, state 1 begins.

    table    [states, 256] the next state
    counts   [states, 256] what reading the byte there adds to the counter
    accepts  [states]; a text is in the language when it ends there with a count of `least` to
             `most`, and None is no bound
    """

    table: NDArray[np.int32]
    counts: NDArray[np.int32]
    accepts: NDArray[np.bool_]
    least: int = 0
    most: int | None = None

    @property
    def states(self) -> int:
        """The dead one included."""
        return len(self.table)

    def reads(self, text: bytes) -> bool:
        """Whether `text` is in the language."""
        state, count = START, 0
        for byte in text:
            count += int(self.counts[state, byte])
            state = int(self.table[state, byte])
        return bool(self.accepts[state]) and self._counted(count)

    def counting(self, least: int, most: int | None) -> Automaton:
        """The same with a count of `least` to `most`."""
        return Automaton(self.table, self.counts, self.accepts, least, most)

    def _counted(self, count: int) -> bool:
        return self.least <= count and (self.most is None or count <= self.most)


def trimmed(
    table: NDArray[np.int32], counts: NDArray[np.int32], accepts: NDArray[np.bool_]
) -> Automaton:
    """The smallest automaton of the same language. State 0 has to be dead, state 1 the start; the
    columns may stand for groups of bytes.

    States that lead nowhere become the dead one, then equal states are merged (Moore).
    """
    live = accepts.copy()
    while True:
        more = live | live[table].any(axis=1)
        if (more == live).all():
            break
        live = more
    table = np.where(live[table], table, DEAD)
    counts = np.where(table != DEAD, counts, 0)
    kinds = accepts.astype(np.int64)
    while True:
        seen = np.concatenate([kinds[:, None], kinds[table], counts], axis=1)
        _, refined = np.unique(seen, axis=0, return_inverse=True)
        refined = refined.reshape(-1)
        if refined.max() == kinds.max():
            break
        kinds = refined.astype(np.int64)
    return _renumbered(table, counts, accepts, kinds)


def _renumbered(
    table: NDArray[np.int32],
    counts: NDArray[np.int32],
    accepts: NDArray[np.bool_],
    kinds: NDArray[np.int64],
) -> Automaton:
    """One state for each kind; the start stays 1 although it may be of the dead kind."""
    _, firsts = np.unique(kinds, return_index=True)
    order = [DEAD, START]
    order += [int(first) for first in firsts if kinds[first] not in (kinds[DEAD], kinds[START])]
    number = np.zeros(int(kinds.max()) + 1, dtype=np.int32)
    for new, old in enumerate(order):
        number[kinds[old]] = new
    if kinds[DEAD] == kinds[START]:
        number[kinds[DEAD]] = DEAD
    return Automaton(number[kinds[table[order]]], counts[order], accepts[order])
