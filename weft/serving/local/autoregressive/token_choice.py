"""The distribution of an answer's next token within its grammar, and what the grammar forces."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from weft.decoding.sampling import SamplingParams, TokenRng
from weft.serving.local.grammar import AnswerGrammar


class TokenChooser:
    """Goes along one answer, token by token: `taken` so far, and none after it has `finished`.

    `steps` tells the tokens that must follow one that was taken; else the grammar does, but for
    answers whose log probabilities are wanted, which `draws_all`: forced tokens have none.
    """

    def __init__(
        self,
        shaping: SamplingParams,
        chance: TokenRng,
        grammar: AnswerGrammar | None = None,
        steps: Callable[[int], list[int]] | None = None,
        *,
        draws_all: bool = False,
    ) -> None:
        self.chance = chance
        self.taken = 0
        self.forced: deque[int] = deque()
        """What comes next whatever the model says; the grammar has taken it already."""
        self._shaping = shaping
        self._grammar = grammar
        self._steps = steps
        self._draws_all = draws_all

    @property
    def finished(self) -> bool:
        """Nothing can follow any more."""
        return not self.forced and self._grammar is not None and self._grammar.finished

    def distribution(self, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        """Of the next token: probabilities [vocabulary]. logits: [vocabulary]; changed.

        Raises: `ModelRequestError` when the grammar has become too complex to follow.
        """
        if self.forced:
            return _certain(self.forced[0], len(logits))
        if self.finished:
            return _certain(0, len(logits))  # it is not read
        if self._grammar is not None:
            self._grammar.restrict(logits)
        return self._shaping.distribution(logits)

    def take(self, token: int) -> None:
        """The answer goes on with `token`, which the distribution allows."""
        if self.finished:
            return
        self.taken += 1
        if self.forced:
            self.forced.popleft()
            return
        if self._grammar is not None:
            self._grammar.accept(token)
        self.forced.extend(self._follow(token))

    def drain(self) -> list[int]:
        """What is forced now, as taken."""
        forced = list(self.forced)
        self.taken += len(forced)
        self.forced.clear()
        return forced

    def _follow(self, token: int) -> list[int]:
        if self._steps is not None:
            return self._steps(token)
        if self._grammar is None or self._draws_all:
            return []
        return self._grammar.forced()


def _certain(token: int, size: int) -> NDArray[np.float64]:
    certain = np.zeros(size)
    certain[token] = 1.0
    return certain
