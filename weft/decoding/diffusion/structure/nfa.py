"""Automata with choices, built state by state, and made deterministic."""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np

from weft.decoding.diffusion.structure.automaton import Automaton, trimmed
from weft.decoding.diffusion.structure.charset import Bytes
from weft.decoding.diffusion.structure.refused import NotASkeleton

MOST_STATES: Final = 1500
_MOST_CHOICES: Final = 60_000


class Nfa:
    """`start` begins; `edges` of a state are (first byte, last byte, count, state)."""

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
        """From `at` to `to` by nothing."""
        self._free[at].append(to)

    def read(self, at: int, path: Bytes, to: int, count: int = 0) -> None:
        """From `at` to `to` by bytes in the ranges of `path`, the first of which adds `count`."""
        for low, high in path[:-1]:
            between = self.state()
            self.edges[at].append((low, high, count, between))
            at, count = between, 0
        self.edges[at].append((*path[-1], count, to))

    def deterministic(self, end: int) -> Automaton:
        """The automaton that accepts in `end` (subset construction).

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
        return Automaton(
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
        left, found = list(states), set(states)
        while left:
            for to in self._free[left.pop()]:
                if to not in found:
                    found.add(to)
                    left.append(to)
        return frozenset(found)
