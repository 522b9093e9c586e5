"""Requests of a batch for the drafter: facts, histories of tokens, and their rows.

The batch is reordered between steps. Facts identify a request by its name. Without them it is
identified by its tokens: a row continues the longest history that its tokens begin with. A mistake
there costs drafts, never an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.serving.vllm.drafting.ngram_index import NgramIndex
from weft.serving.vllm.drafting.suffix_drafter import DraftStep, SuffixMatchDrafter

LABEL = "weft_node"
"""The request's extra argument that names the node of the program that asks."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """The constraint of an answer, in llguidance's terms."""

    kind: Literal["json", "lark", "regex"]
    text: str


@dataclass(frozen=True, slots=True)
class RowFacts:
    """`request` is the same in every step. The first `prompt_tokens` tokens were not generated."""

    request: str
    label: str = ""
    prompt_tokens: int = 0
    constraint: Constraint | None = None


class RunningBatch(Protocol):
    """The engine's running batch, queried in every step."""

    def rows(self) -> Sequence[RowFacts]:
        """One per row, in the order of the step's arrays. May raise anything."""

    def living(self) -> Container[str]:
        """The requests that have not ended, including those without a row in this step."""


_OVERLAP: Final = 8


class ForcedTokenSource(Protocol):
    """Forced tokens of one answer by its grammar."""

    def take(self, tokens: Sequence[int]) -> None:
        """Append `tokens` to the answer."""

    def forced(self) -> Sequence[int]:
        """The tokens that must come next."""


class RequestHistory:
    """Tokens of one request; those after the first `prompt_tokens` are its answer.

    Adding a token takes constant time.
    """

    def __init__(
        self, drafter: SuffixMatchDrafter, label: str = "", grammar: ForcedTokenSource | None = None
    ) -> None:
        self.label = label
        self.tokens: list[int] = []
        self.prompt_tokens = 0
        self._drafter = drafter
        self._grammar = grammar
        self._own = NgramIndex(growing=True)
        self._drafted: list[DraftStep] = []
        self._shared = 0

    @property
    def answer(self) -> list[int]:
        """The generated tokens."""
        return self.tokens[self.prompt_tokens :]

    def begin(self, prompt: Sequence[int]) -> None:
        """Add the prompt, before any answer."""
        self._grow(prompt)
        self.prompt_tokens = len(prompt)

    def extend(self, tokens: Sequence[int]) -> None:
        """Append `tokens` to the answer, and score the latest draft by them."""
        for step, token in zip(self._drafted, tokens, strict=False):
            if step.ground is not None:
                self._drafter.chances.observe(step.ground, right=step.token == token)
            if step.token != token:
                break
        self._drafted = []
        self._grow(tokens)
        if self._grammar is not None:
            self._grammar.take(tokens)

    def draft(self, most: int, others: Iterable[NgramIndex]) -> list[int]:
        """At most `most` likely next tokens: first forced ones, then those that texts suggest."""
        forced = () if self._grammar is None else self._grammar.forced()[:most]
        steps = [DraftStep(token, None) for token in forced]
        if len(steps) < most:
            sources, left = (self._own, *others), most - len(steps)
            steps += self._drafter.guess(sources, self.tokens, left, forced)
        self._drafted = steps
        return [step.token for step in steps]

    def unshared(self, least: int) -> list[int]:
        """Tokens answered since the last call, with a short overlap; none if fewer than `least`."""
        answered = len(self.tokens) - self.prompt_tokens
        if answered - self._shared < max(least, 1):
            return []
        start = self.prompt_tokens + max(0, self._shared - _OVERLAP)
        self._shared = answered
        return self.tokens[start:]

    def _grow(self, tokens: Sequence[int]) -> None:
        self._own.extend(tokens)
        self.tokens.extend(tokens)


Ids = NDArray[np.int32]
_PATIENCE: Final = 64
"""Steps out of the batch after which a request counts as ended, where its end is not known."""


class RequestRows:
    """The histories of all running requests. `make` creates one from a row's facts."""

    def __init__(self, make: Callable[[RowFacts | None], RequestHistory]) -> None:
        self._make = make
        self._histories: dict[RequestHistory, str] = {}
        self._named: dict[str, RequestHistory] = {}
        self._last_step: dict[RequestHistory, int] = {}
        self._step = 0

    def __len__(self) -> int:
        return len(self._histories)

    def history_of(
        self, ids: Ids, new: int, facts: RowFacts | None, taken: Container[RequestHistory]
    ) -> RequestHistory:
        """The history of a row, extended by the row's new tokens. ids: [tokens]

        The last `new` tokens came in this step; `taken` are the histories of other rows.
        """
        history = self._by_tokens(ids, taken) if facts is None else self._by_name(ids, facts)
        if history is None:
            history = self._make(facts)
            self._histories[history] = "" if facts is None else facts.request
            if facts is not None:
                self._named[facts.request] = history
            prompt = len(ids) - new
            if facts is not None and facts.prompt_tokens:
                prompt = min(facts.prompt_tokens, len(ids))
            history.begin(ids[:prompt].tolist())
        self._last_step[history] = self._step
        history.extend(ids[len(history.tokens) :].tolist())
        return history

    def ended(self, living: Container[str] | None) -> list[RequestHistory]:
        """Remove and return the histories of ended requests. Call it once per step.

        `living` are the requests that have not ended. Without it, or without a name, a request ends
        after some steps out of the batch.
        """
        self._step += 1
        over = [
            history
            for history, name in self._histories.items()
            if (self._late(history) if living is None or not name else name not in living)
        ]
        for history in over:
            self.drop(history)
        return over

    def drop(self, history: RequestHistory) -> None:
        """Remove a history."""
        name = self._histories.pop(history)
        del self._last_step[history]
        if self._named.get(name) is history:
            del self._named[name]

    def _late(self, history: RequestHistory) -> bool:
        return self._step - self._last_step[history] > _PATIENCE

    def _by_name(self, ids: Ids, facts: RowFacts) -> RequestHistory | None:
        history = self._named.get(facts.request)
        if history is None or _may_begin(ids, history):
            return history
        self.drop(history)  # the name was reused
        return None

    def _by_tokens(self, ids: Ids, taken: Container[RequestHistory]) -> RequestHistory | None:
        nameless = (each for each, name in self._histories.items() if not name)
        fitting = (each for each in nameless if each not in taken and _begins(ids, each))
        return max(fitting, key=lambda history: len(history.tokens), default=None)


def _may_begin(ids: Ids, history: RequestHistory) -> bool:
    """Whether the row is as long as the history and has its last token at the same place."""
    length = len(history.tokens)
    return 0 < length <= len(ids) and int(ids[length - 1]) == history.tokens[-1]


def _begins(ids: Ids, history: RequestHistory) -> bool:
    length = len(history.tokens)
    return _may_begin(ids, history) and np.array_equal(
        ids[:length], np.fromiter(history.tokens, ids.dtype, length)
    )
