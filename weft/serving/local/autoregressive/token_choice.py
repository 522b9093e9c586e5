"""The distribution of an answer's next token within its grammar, and the forced tokens."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from weft.decoding.sampling import CounterRng, SamplingParams
from weft.serving.local.grammar import AnswerGrammar


class TokenChooser:
    """Chooses the tokens of one answer: `taken` so far; none follows once it is `finished`.

    `steps` returns the tokens forced after a taken one; without it the grammar does, except for
    answers with log probabilities (`samples_all`): forced tokens have none.
    """

    def __init__(
        self,
        params: SamplingParams,
        rng: CounterRng,
        grammar: AnswerGrammar | None = None,
        steps: Callable[[int], list[int]] | None = None,
        *,
        samples_all: bool = False,
    ) -> None:
        self.rng = rng
        self.taken = 0
        self.forced: deque[int] = deque()
        """The next tokens, whatever the model says; the grammar has taken them already."""
        self.params = params
        self._grammar = grammar
        self._steps = steps
        self._samples_all = samples_all

    @property
    def finished(self) -> bool:
        """Whether nothing can follow."""
        return not self.forced and self._grammar is not None and self._grammar.finished

    @property
    def free(self) -> bool:
        """Whether the logits alone decide the next token: no grammar, and none is forced."""
        return self._grammar is None and not self.forced

    def distribution(self, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        """Probabilities [vocabulary] of the next token. logits: [vocabulary]; modified.

        Raises: `ModelRequestError` when the grammar has become too complex to follow.
        """
        if self.forced:
            return certain(self.forced[0], len(logits))
        if self.finished:
            return certain(0, len(logits))  # it is not read
        if self._grammar is not None:
            self._grammar.restrict(logits)
        return self.params.distribution(logits)

    def token(self, logits: NDArray[np.float32], position: int) -> int:
        """The next token, of the answer's `position`: drawn from `distribution`. logits: modified.

        Raises: as `distribution`.
        """
        if not self.params.greedy or self.forced or self.finished:
            return self.rng.token(self.distribution(logits), position)
        if self._grammar is not None:
            self._grammar.restrict(logits)
        return int(logits.argmax())

    def take(self, token: int) -> None:
        """Continue the answer with `token`, which the distribution allows."""
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
        """Take and return the tokens forced now."""
        forced = list(self.forced)
        self.taken += len(forced)
        self.forced.clear()
        return forced

    def _follow(self, token: int) -> list[int]:
        if self._steps is not None:
            return self._steps(token)
        if self._grammar is None or self._samples_all:
            return []
        return self._grammar.forced()


def certain(token: int, size: int) -> NDArray[np.float64]:
    """The distribution [size] of a token that is chosen already."""
    found = np.zeros(size)
    found[token] = 1.0
    return found
