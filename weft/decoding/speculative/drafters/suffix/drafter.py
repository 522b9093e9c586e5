"""A draft from counts of suffixes: as long as it is likely to be right."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from weft.decoding.speculative.drafters.suffix.shared import Shared
from weft.decoding.speculative.drafters.suffix.trie import Node, Trie
from weft.decoding.speculative.tree import ROOT, DraftTree


@dataclass(frozen=True, slots=True)
class SuffixOptions:
    """`depth` of the trie of the text itself. A match of m tokens is followed for at most
    `factor` * m + `offset` tokens, and while a token is reached with at least `least` probability.
    `tree`: the likeliest nodes instead of the likeliest path.
    """

    depth: int = 24
    factor: float = 1.0
    offset: float = 0.0
    least: float = 0.1
    tree: bool = False


@dataclass(frozen=True, slots=True)
class Guess:
    """A draft, and how many of its tokens are expected to be right by the counts."""

    tree: DraftTree
    expected: float


class Suffixes:
    """Implements `Drafter` over the sequence itself and, if given, what others wrote.

    The draft with the most expected tokens wins; of equals the longer match, then the own text.
    """

    name = "suffix"

    def __init__(self, options: SuffixOptions | None = None, shared: Shared | None = None) -> None:
        self._options = options or SuffixOptions()
        self._shared = shared
        self._own = Trie(self._options.depth)
        self._runs: list[Node] = []
        self._end: list[int] = []

    def extend(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            self._runs = self._own.grow(self._runs, token)
        longest = max(self._own.depth, 0 if self._shared is None else self._shared.trie.depth)
        self._end = [*self._end, *tokens][-longest:]

    def propose(self, most: int) -> DraftTree:
        return self.guess(most).tree

    def guess(self, most: int) -> Guess:
        """The draft with what is expected of it, for who has other drafters to choose from."""
        best, match = Guess(DraftTree(), 0.0), 0
        others = () if self._shared is None else (self._shared.trie,)
        for trie in (self._own, *others):
            for length, node in trie.matches(self._end):
                guess = self._followed(node, length, most)
                if (guess.expected, length) > (best.expected, match):
                    best, match = guess, length
        return best

    def _followed(self, node: Node, length: int, most: int) -> Guess:
        options = self._options
        nodes = min(most, int(options.factor * length + options.offset))
        return followed(node, nodes, options.least, tree=options.tree)


def followed(start: Node, most: int, least: float, *, tree: bool) -> Guess:
    """The likeliest continuation of `start`: a path, or the likeliest nodes as a tree.

    The probability of a node is its parent's times its share of the parent's occurrences.
    """
    tokens: list[int] = []
    parents: list[int] = []
    expected = 0.0
    waiting: list[tuple[float, int, int, Node]] = []  # -probability, place of the parent, token

    def offer(node: Node, probability: float, place: int) -> None:
        for token, child in node.following(all_of_them=tree):
            share = probability * child.count / node.count
            if share >= least:
                heapq.heappush(waiting, (-share, place, token, child))

    offer(start, 1.0, ROOT)
    while waiting and len(tokens) < most:
        negative, parent, token, node = heapq.heappop(waiting)
        tokens.append(token)
        parents.append(parent)
        expected -= negative
        offer(node, -negative, len(tokens) - 1)
    return Guess(DraftTree(tuple(tokens), tuple(parents)), expected)
