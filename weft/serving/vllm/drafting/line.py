"""One request as its drafter sees it: its tokens so far, counted as they come. Knows no batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from weft.serving.vllm.drafting.concordance import Concordance
from weft.serving.vllm.drafting.guess import Guesser, Step

_OVERLAP: Final = 8


class Grammar(Protocol):
    """What must follow by the grammar of an answer."""

    def take(self, tokens: Sequence[int]) -> None:
        """The answer goes on with `tokens`."""

    def forced(self) -> Sequence[int]:
        """The tokens that must follow whatever the model says."""


class Line:
    """Tokens of one request; those after the first `prompt_tokens` are its answer.

    A token costs the same however many there are.
    """

    def __init__(self, guesser: Guesser, label: str = "", grammar: Grammar | None = None) -> None:
        self.label = label
        self.tokens: list[int] = []
        self.prompt_tokens = 0
        self._guesser = guesser
        self._grammar = grammar
        self._own = Concordance(growing=True)
        self._drafted: list[Step] = []
        self._told = 0

    @property
    def answer(self) -> list[int]:
        """What was generated."""
        return self.tokens[self.prompt_tokens :]

    def begin(self, prompt: Sequence[int]) -> None:
        """The prompt, before anything was answered."""
        self._grow(prompt)
        self.prompt_tokens = len(prompt)

    def extend(self, tokens: Sequence[int]) -> None:
        """The answer goes on with `tokens`, which test the latest draft."""
        for step, token in zip(self._drafted, tokens, strict=False):
            if step.ground is not None:
                self._guesser.chances.observe(step.ground, right=step.token == token)
            if step.token != token:
                break
        self._drafted = []
        self._grow(tokens)
        if self._grammar is not None:
            self._grammar.take(tokens)

    def draft(self, most: int, others: Iterable[Concordance]) -> list[int]:
        """At most `most` tokens that may follow: what a grammar forces, and then what texts say."""
        forced = () if self._grammar is None else self._grammar.forced()[:most]
        steps = [Step(token, None) for token in forced]
        if len(steps) < most:
            sources, left = (self._own, *others), most - len(steps)
            steps += self._guesser.guess(sources, self.tokens, left, forced)
        self._drafted = steps
        return [step.token for step in steps]

    def news(self, least: int) -> list[int]:
        """What was answered since the last time, with a little before; nothing below `least`."""
        answered = len(self.tokens) - self.prompt_tokens
        if answered - self._told < max(least, 1):
            return []
        start = self.prompt_tokens + max(0, self._told - _OVERLAP)
        self._told = answered
        return self.tokens[start:]

    def _grow(self, tokens: Sequence[int]) -> None:
        self._own.extend(tokens)
        self.tokens.extend(tokens)
