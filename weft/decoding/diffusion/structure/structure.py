"""The port to a structured answer, and the structure that a grammar allows token by token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.structure.slots import OPEN

__all__ = ["OPEN", "Structure", "StructureKind"]

StructureKind = Literal["skeleton", "left_to_right"]


class Structure(Protocol):
    """One answer; slots are counted from its first, and move when it is written to.

    Only tokens that fit are written.
    """

    @property
    def kind(self) -> StructureKind:
        """How it is filled."""

    @property
    def reason(self) -> str:
        """Why it is no skeleton; empty for a skeleton."""

    @property
    def narrowed(self) -> tuple[str, ...]:
        """Values that fit but are never written."""

    @property
    def tokens(self) -> list[int]:
        """The token in each slot; `OPEN` where it is undecided."""

    @property
    def literal(self) -> list[bool]:
        """For each slot: whether it is a literal."""

    @property
    def over(self) -> bool:
        """Whether nothing more can be written."""

    @property
    def complete(self) -> bool:
        """Whether the text is a whole answer of the requested form."""

    def restrict(self, slot: int, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """`logits` [vocabulary] of an open slot, -inf for tokens that do not fit."""

    def admitted(self, slots: Sequence[int], tokens: Sequence[int]) -> list[bool]:
        """Which of these can be decided together, earlier ones first."""

    def write(self, slots: Sequence[int], tokens: Sequence[int]) -> None:
        """Decide slots in the order of their admission, and all that follows from them."""


class GrammarState(Protocol):
    """The state of one text in its grammar."""

    @property
    def finished(self) -> bool:
        """Whether nothing can follow."""

    @property
    def complete(self) -> bool:
        """Whether the text so far fits as a whole."""

    def restrict(self, logits: NDArray[np.float32]) -> None:
        """Set the logits of tokens that cannot follow to -inf, in place."""

    def following(self, tokens: Sequence[int]) -> int:
        """How many of `tokens` could follow in sequence; accepts none."""

    def accept(self, token: int) -> None:
        """Append a sampled token."""

    def forced(self) -> list[int]:
        """Append and return the tokens that must follow."""


class LeftToRightStructure:
    """A `Structure` with `open_tokens` open slots after the text, at most `room` in all."""

    kind: Final[StructureKind] = "left_to_right"
    narrowed: Final[tuple[str, ...]] = ()

    def __init__(
        self,
        grammar: GrammarState,
        end_ids: frozenset[int],
        room: int,
        open_tokens: int,
        reason: str,
    ) -> None:
        self.reason = reason
        self._grammar = grammar
        self._end_ids = end_ids
        self._room = room
        self._open_tokens = open_tokens
        self._written: list[int] = []
        self._ended = False
        self._follow()

    @property
    def tokens(self) -> list[int]:
        return self._written + [OPEN] * self._open

    @property
    def literal(self) -> list[bool]:
        return [False] * len(self.tokens)

    @property
    def over(self) -> bool:
        return self._open == 0

    @property
    def complete(self) -> bool:
        return self._ended or self._grammar.complete

    def restrict(self, slot: int, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """Restricts the first open slot only."""
        out = logits.copy()
        if slot == len(self._written):
            self._grammar.restrict(out)
        return out

    def admitted(self, slots: Sequence[int], tokens: Sequence[int]) -> list[bool]:
        """The tokens that continue the text without a gap, as far as the grammar allows."""
        proposed = dict(zip(slots, tokens, strict=True))
        run: list[int] = []
        while len(self._written) + len(run) in proposed:
            token = proposed[len(self._written) + len(run)]
            if token in self._end_ids and run:
                break
            run.append(token)
        count = len(run)
        if run and run[0] not in self._end_ids:
            count = self._grammar.following(run)
        return [len(self._written) <= slot < len(self._written) + count for slot in slots]

    def write(self, slots: Sequence[int], tokens: Sequence[int]) -> None:
        for _, token in sorted(zip(slots, tokens, strict=True)):
            if self.over:
                return
            if token in self._end_ids:
                self._ended = True
                return
            self._grammar.accept(token)
            self._written.append(token)
            self._follow()

    def _follow(self) -> None:
        if not self._grammar.finished:
            self._written += self._grammar.forced()[: self._room - len(self._written)]

    @property
    def _open(self) -> int:
        if self._ended or self._grammar.finished:
            return 0
        return min(self._open_tokens, self._room - len(self._written))
