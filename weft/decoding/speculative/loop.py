"""Speculative decoding of one sequence: propose, verify, walk, commit. Without drafts it is plain.

Knows no text: stop strings are for who reads the tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from weft.decoding.speculative.chance import Chance
from weft.decoding.speculative.counters import Counters
from weft.decoding.speculative.drafter import Drafter
from weft.decoding.speculative.target import Target
from weft.decoding.speculative.walk import Acceptor


class Lengths(Protocol):
    """How much to draft; `Goodput` is one."""

    def length(self) -> int:
        """At most so many nodes now."""

    def observe(self, drafted: int, accepted: int) -> None:
        """What came of the last draft: how deep it was, and how far it was accepted."""


@dataclass(frozen=True, slots=True)
class Always:
    """Implements `Lengths`: the same length at every step; 0 is plain decoding."""

    nodes: int

    def length(self) -> int:
        return self.nodes

    def observe(self, drafted: int, accepted: int) -> None:
        """Learns nothing."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The text ends with one of `end_ids`, at the latest after `max_tokens`."""

    max_tokens: int
    end_ids: frozenset[int] = frozenset()


class Decoding:
    """One sequence on its way. `target` and `drafter` know the prompt already.

    `position` is that of the first token, for the chance that decides. Give each step's tokens on
    as they come: iterating again goes on where it stopped.
    """

    def __init__(
        self,
        target: Target,
        drafter: Drafter,
        acceptor: Acceptor,
        lengths: Lengths,
        chance: Chance,
        limits: Limits,
        position: int = 0,
    ) -> None:
        self.counters = Counters()
        self.done = limits.max_tokens < 1
        self._target = target
        self._drafter = drafter
        self._acceptor = acceptor
        self._lengths = lengths
        self._chance = chance
        self._limits = limits
        self._position = position

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        while not self.done:
            yield self.step()

    def step(self) -> tuple[int, ...]:
        """One pass of the target: at least one token, the last of the text with an end in it."""
        room = self._limits.max_tokens - self.counters.tokens
        # the target's own token comes after the draft, and has to fit too
        tree = self._drafter.propose(self._lengths.length()).clipped(room - 1)
        law_at = self._target.verify(tree)
        here = self._position + self.counters.tokens
        walk = self._acceptor.walk(tree, law_at, self._chance, here)
        tokens = self._until_the_end(walk.tokens(tree))
        accepted, deepest = min(len(walk.path), len(tokens)), int(tree.depths.max())
        self.counters.step(len(tree), deepest, walk.tried, accepted, len(tokens))
        self._lengths.observe(deepest, accepted)
        self.done |= self.counters.tokens >= self._limits.max_tokens
        if not self.done:
            self._target.commit(walk.path, walk.bonus)
            self._drafter.extend(tokens)
        return tokens

    def _until_the_end(self, tokens: tuple[int, ...]) -> tuple[int, ...]:
        for count, token in enumerate(tokens, 1):
            if token in self._limits.end_ids:
                self.done = True
                return tokens[:count]
        return tokens
