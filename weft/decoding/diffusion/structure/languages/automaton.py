"""Finite automata over bytes, with one counter: nondeterministic, deterministic and minimal.

Characters are ranges of code points, as UTF-8 or as UTF-8 inside a JSON string.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.structure.languages.errors import NotASkeleton

DEAD: Final = 0
START: Final = 1


@dataclass(frozen=True, slots=True, eq=False)
class ByteAutomaton:
    """A deterministic automaton. State 0 is dead, state 1 is the start.

    table    [states, 256] the next state
    counts   [states, 256] what reading the byte there adds to the counter
    accepts  [states]; a text is in the language when it ends there with a count of `least` to
             `most`; None: no bound
    """

    table: NDArray[np.int32]
    counts: NDArray[np.int32]
    accepts: NDArray[np.bool_]
    least: int = 0
    most: int | None = None

    @property
    def states(self) -> int:
        """Number of states, including the dead one."""
        return len(self.table)

    def reads(self, text: bytes) -> bool:
        """Whether `text` is in the language."""
        state, count = START, 0
        for byte in text:
            count += int(self.counts[state, byte])
            state = int(self.table[state, byte])
        return bool(self.accepts[state]) and self._counted(count)

    def counting(self, least: int, most: int | None) -> ByteAutomaton:
        """The same automaton with a count of `least` to `most`."""
        return ByteAutomaton(self.table, self.counts, self.accepts, least, most)

    def _counted(self, count: int) -> bool:
        return self.least <= count and (self.most is None or count <= self.most)


def trimmed(
    table: NDArray[np.int32], counts: NDArray[np.int32], accepts: NDArray[np.bool_]
) -> ByteAutomaton:
    """The minimal automaton of the same language. State 0 must be dead, state 1 the start; columns
    may stand for groups of bytes.

    States without a path to acceptance become dead, then equal states are merged (Moore).
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
        signatures = np.concatenate([kinds[:, None], kinds[table], counts], axis=1)
        _, refined = np.unique(signatures, axis=0, return_inverse=True)
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
) -> ByteAutomaton:
    """One state for each kind; the start stays 1 even if it is dead."""
    _, firsts = np.unique(kinds, return_index=True)
    order = [DEAD, START]
    order += [int(first) for first in firsts if kinds[first] not in (kinds[DEAD], kinds[START])]
    number = np.zeros(int(kinds.max()) + 1, dtype=np.int32)
    for new, old in enumerate(order):
        number[kinds[old]] = new
    if kinds[DEAD] == kinds[START]:
        number[kinds[DEAD]] = DEAD
    return ByteAutomaton(number[kinds[table[order]]], counts[order], accepts[order])


CharRange = tuple[int, int]
"""First and last code point or byte, both included."""
ByteRanges = tuple[CharRange, ...]
"""Byte ranges that follow one another."""

EVERYTHING: Final[tuple[CharRange, ...]] = ((0, 0xD7FF), (0xE000, 0x10FFFF))
"""All characters but surrogates."""
_LENGTHS: Final = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)
_ESCAPES: Final = {
    8: b"\\b",
    9: b"\\t",
    10: b"\\n",
    12: b"\\f",
    13: b"\\r",
    34: b'\\"',
    92: b"\\\\",
}


def merge_ranges(ranges: list[CharRange]) -> tuple[CharRange, ...]:
    """The ranges ascending, without overlaps and surrogates."""
    out: list[CharRange] = []
    for low, high in sorted(part for one in ranges for part in _without_surrogates(one)):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(high, out[-1][1]))
        else:
            out.append((low, high))
    return tuple(out)


def complement(ranges: tuple[CharRange, ...]) -> tuple[CharRange, ...]:
    """All other characters. `ranges` must come from `merge_ranges`."""
    rest, begin = [], 0
    for low, high in ranges:
        if begin < low:
            rest.append((begin, low - 1))
        begin = high + 1
    if begin <= 0x10FFFF:
        rest.append((begin, 0x10FFFF))
    return merge_ranges(rest)


def utf8_ranges(ranges: tuple[CharRange, ...]) -> Iterator[ByteRanges]:
    """The UTF-8 of any character of `ranges`."""
    for low, high in ranges:
        for end in _LENGTHS:
            if low <= min(high, end):
                yield from _aligned(low, min(high, end))
                low = end + 1


def json_string_ranges(ranges: tuple[CharRange, ...]) -> Iterator[ByteRanges]:
    """The same inside a JSON string: escaped where necessary, without other controls."""
    cut = [(low, high) for low, high in ranges]
    for code, escape in _ESCAPES.items():
        if any(low <= code <= high for low, high in ranges):
            yield tuple((byte, byte) for byte in escape)
        cut = [part for one in cut for part in _without(one, code)]
    yield from utf8_ranges(tuple((max(low, 32), high) for low, high in cut if high >= 32))


def _without_surrogates(one: CharRange) -> list[CharRange]:
    low, high = one
    parts = [(low, min(high, 0xD7FF)), (max(low, 0xE000), high)]
    return [(a, b) for a, b in parts if a <= b]


def _without(one: CharRange, code: int) -> list[CharRange]:
    low, high = one
    parts = [(low, min(high, code - 1)), (max(low, code + 1), high)]
    return [(a, b) for a, b in parts if a <= b]


def _aligned(low: int, high: int) -> Iterator[ByteRanges]:
    """Byte ranges of characters of one encoded length, cut until bytes vary independently."""
    for shift in (6, 12, 18):
        mask = (1 << shift) - 1
        if low & ~mask == high & ~mask:
            continue
        if low & mask:
            yield from _aligned(low, low | mask)
            yield from _aligned((low | mask) + 1, high)
            return
        if high & mask != mask:
            yield from _aligned(low, (high & ~mask) - 1)
            yield from _aligned(high & ~mask, high)
            return
    yield tuple(zip(chr(low).encode(), chr(high).encode(), strict=True))


MOST_STATES: Final = 1500
_MOST_CHOICES: Final = 60_000


class Nfa:
    """A nondeterministic automaton; edges of a state are (first byte, last byte, count, state)."""

    def __init__(self) -> None:
        self.edges: list[list[tuple[int, int, int, int]]] = []
        self._free: list[list[int]] = []
        self.start = self.state()

    def state(self) -> int:
        """A new state. Raises: `NotASkeleton` when there are too many."""
        if len(self.edges) >= _MOST_CHOICES:
            raise NotASkeleton("a pattern is too large")
        self.edges.append([])
        self._free.append([])
        return len(self.edges) - 1

    def skip(self, at: int, to: int) -> None:
        """Add an empty edge from `at` to `to`."""
        self._free[at].append(to)

    def read(self, at: int, path: ByteRanges, to: int, count: int = 0) -> None:
        """Add a path of byte ranges from `at` to `to`; its first byte adds `count`."""
        for low, high in path[:-1]:
            between = self.state()
            self.edges[at].append((low, high, count, between))
            at, count = between, 0
        self.edges[at].append((*path[-1], count, to))

    def deterministic(self, end: int) -> ByteAutomaton:
        """The deterministic automaton that accepts in `end` (subset construction).

        Raises: `NotASkeleton` when it is too large.
        """
        cuts = sorted({0, 256} | {b for es in self.edges for e in es for b in (e[0], e[1] + 1)})
        pieces = list(itertools.pairwise(cuts))
        first = self._reached({self.start})
        numbers: dict[frozenset[int], int] = {frozenset(): 0, first: 1}
        queue = [first]
        table, counts = [[0] * len(pieces)], [[0] * len(pieces)]
        for here in queue:
            nexts, adds = [], []
            for low, _ in pieces:
                there, add = self._after(here, low)
                if there not in numbers:
                    if len(numbers) > MOST_STATES:
                        raise NotASkeleton("a pattern has too many states")
                    numbers[there] = len(numbers)
                    queue.append(there)
                nexts.append(numbers[there])
                adds.append(add)
            table.append(nexts)
            counts.append(adds)
        widths = [high - low for low, high in pieces]
        accepts = np.array([end in states for states in numbers], dtype=np.bool_)
        short = trimmed(np.array(table, np.int32), np.array(counts, np.int32), accepts)
        return ByteAutomaton(
            np.repeat(short.table, widths, axis=1),
            np.repeat(short.counts, widths, axis=1),
            short.accepts,
        )

    def _after(self, here: frozenset[int], byte: int) -> tuple[frozenset[int], int]:
        reached: set[int] = set()
        count = 0
        for state in here:
            for low, high, add, to in self.edges[state]:
                if low <= byte <= high:
                    reached.add(to)
                    count = add
        return self._reached(reached), count

    def _reached(self, states: set[int]) -> frozenset[int]:
        left, closure = list(states), set(states)
        while left:
            for to in self._free[left.pop()]:
                if to not in closure:
                    closure.add(to)
                    left.append(to)
        return frozenset(closure)
