"""N-grams by their first token, the few used last of each. Knows not where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from weft.decoding.speculative.tree import ROOT, DraftTree


class Pool:
    """At most `guesses` continuations of every token; the one unused for longest goes first."""

    def __init__(self, guesses: int) -> None:
        self._guesses = guesses
        self._after: dict[int, dict[tuple[int, ...], None]] = {}

    def add(self, ngram: Sequence[int]) -> None:
        """Keep it as a continuation of its first token, the latest one."""
        key, rest = ngram[0], tuple(ngram[1:])
        known = self._after.setdefault(key, {})
        known.pop(rest, None)
        known[rest] = None
        if len(known) > self._guesses:
            del known[next(iter(known))]

    def guesses(self, token: int) -> list[tuple[int, ...]]:
        """What may follow `token`, the latest first."""
        return list(reversed(self._after.get(token, {})))

    def tree(self, token: int, most: int) -> DraftTree:
        """The guesses after `token`, what they share merged; at most `most` nodes."""
        tokens: list[int] = []
        parents: list[int] = []
        place: dict[tuple[int, int], int] = {}
        for guess in self.guesses(token):
            node = ROOT
            for each in islice(guess, most):
                step = (node, each)
                if step not in place:
                    if len(tokens) == most:
                        return DraftTree(tuple(tokens), tuple(parents))
                    place[step] = len(tokens)
                    tokens.append(each)
                    parents.append(node)
                node = place[step]
        return DraftTree(tuple(tokens), tuple(parents))
