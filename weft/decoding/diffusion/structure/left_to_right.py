"""An answer that a grammar allows token by token: only the beginning of what is open is decided.

For what cannot be laid out as a skeleton. Knows the grammar by a port.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.structure.slot import OPEN
from weft.decoding.diffusion.structure.structure import Kind


class Following(Protocol):
    """Where one text stands in its grammar."""

    @property
    def finished(self) -> bool:
        """Nothing can follow any more."""

    @property
    def complete(self) -> bool:
        """What has been written fits as it stands."""

    def restrict(self, logits: NDArray[np.float32]) -> None:
        """Set the logits of tokens that cannot follow to -inf, in place."""

    def following(self, tokens: Sequence[int]) -> int:
        """How many of `tokens`, one after another, could follow now. Takes none."""

    def accept(self, token: int) -> None:
        """Take the token that was drawn."""

    def forced(self) -> list[int]:
        """Take and return the tokens that must follow now."""


class LeftToRight:
    """A `Structure`: `open_tokens` slots are open behind what is written, at most `room` in all."""

    kind: Final[Kind] = "left_to_right"
    narrowed: Final[tuple[str, ...]] = ()

    def __init__(
        self,
        grammar: Following,
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
        """Only what may stand first is known."""
        out = logits.copy()
        if slot == len(self._written):
            self._grammar.restrict(out)
        return out

    def admitted(self, slots: Sequence[int], tokens: Sequence[int]) -> list[bool]:
        """Those that follow what is written without a gap, as far as the grammar goes along."""
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
