"""The requests of a batch as the drafter sees them: facts, tokens so far, and which row is whose.

The batch is reordered between steps. With facts a request is known by its name. Without them it is
known by its tokens: a row goes on with the longest history that its tokens begin with. A mistake
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
    """What the answer is held to, as llguidance reads it."""

    kind: Literal["json", "lark", "regex"]
    text: str


@dataclass(frozen=True, slots=True)
class RowFacts:
    """`request` is the same in every step. `prompt_tokens` of its tokens were not generated."""

    request: str
    label: str = ""
    prompt_tokens: int = 0
    constraint: Constraint | None = None


class RunningBatch(Protocol):
    """The engine's running batch, asked anew in every step."""

    def rows(self) -> Sequence[RowFacts]:
        """One for each row, in the order of the step's arrays. May raise anything."""

    def living(self) -> Container[str]:
        """The requests that have not ended, those without a row in this step included."""


_OVERLAP: Final = 8


class ForcedTokenSource(Protocol):
    """What must follow by the grammar of an answer."""

    def take(self, tokens: Sequence[int]) -> None:
        """The answer goes on with `tokens`."""

    def forced(self) -> Sequence[int]:
        """The tokens that must follow whatever the model says."""


class RequestHistory:
    """Tokens of one request; those after the first `prompt_tokens` are its answer.

    A token costs the same however many there are.
    """

    def __init__(
        self, guesser: SuffixMatchDrafter, label: str = "", grammar: ForcedTokenSource | None = None
    ) -> None:
        self.label = label
        self.tokens: list[int] = []
        self.prompt_tokens = 0
        self._guesser = guesser
        self._grammar = grammar
        self._own = NgramIndex(growing=True)
        self._drafted: list[DraftStep] = []
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

    def draft(self, most: int, others: Iterable[NgramIndex]) -> list[int]:
        """At most `most` tokens that may follow: what a grammar forces, and then what texts say."""
        forced = () if self._grammar is None else self._grammar.forced()[:most]
        steps = [DraftStep(token, None) for token in forced]
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


Ids = NDArray[np.int32]
_PATIENCE: Final = 64
"""So many steps a line may be out of the batch before it counts as ended, where that is unknown."""


class RequestRows:
    """The lines of all requests that have not ended. `make` makes a new one of a row's facts."""

    def __init__(self, make: Callable[[RowFacts | None], RequestHistory]) -> None:
        self._make = make
        self._lines: dict[RequestHistory, str] = {}
        self._named: dict[str, RequestHistory] = {}
        self._seen: dict[RequestHistory, int] = {}
        self._step = 0

    def __len__(self) -> int:
        return len(self._lines)

    def line(
        self, ids: Ids, new: int, facts: RowFacts | None, taken: Container[RequestHistory]
    ) -> RequestHistory:
        """The line of a row, told what the row has beyond it. ids: [tokens]

        The last `new` tokens came in this step; `taken` are the lines of other rows of this step.
        """
        line = self._by_tokens(ids, taken) if facts is None else self._by_name(ids, facts)
        if line is None:
            line = self._make(facts)
            self._lines[line] = "" if facts is None else facts.request
            if facts is not None:
                self._named[facts.request] = line
            prompt = len(ids) - new
            if facts is not None and facts.prompt_tokens:
                prompt = min(facts.prompt_tokens, len(ids))
            line.begin(ids[:prompt].tolist())
        self._seen[line] = self._step
        line.extend(ids[len(line.tokens) :].tolist())
        return line

    def ended(self, living: Container[str] | None) -> list[RequestHistory]:
        """Take out and return the lines whose requests are over. Call it once a step.

        `living` are the requests that are not. Of lines without a name, and of all where nobody can
        say, time must tell.
        """
        self._step += 1
        over = [
            line
            for line, name in self._lines.items()
            if (self._late(line) if living is None or not name else name not in living)
        ]
        for line in over:
            self.drop(line)
        return over

    def drop(self, line: RequestHistory) -> None:
        """Forget a line."""
        name = self._lines.pop(line)
        del self._seen[line]
        if self._named.get(name) is line:
            del self._named[name]

    def _late(self, line: RequestHistory) -> bool:
        return self._step - self._seen[line] > _PATIENCE

    def _by_name(self, ids: Ids, facts: RowFacts) -> RequestHistory | None:
        line = self._named.get(facts.request)
        if line is None or _may_begin(ids, line):
            return line
        self.drop(line)  # the name was given again
        return None

    def _by_tokens(self, ids: Ids, taken: Container[RequestHistory]) -> RequestHistory | None:
        nameless = (line for line, name in self._lines.items() if not name and line not in taken)
        fitting = (line for line in nameless if _begins(ids, line))
        return max(fitting, key=lambda line: len(line.tokens), default=None)


def _may_begin(ids: Ids, line: RequestHistory) -> bool:
    """Whether the row is as long as the line and has its last token where it should be."""
    known = len(line.tokens)
    return 0 < known <= len(ids) and int(ids[known - 1]) == line.tokens[-1]


def _begins(ids: Ids, line: RequestHistory) -> bool:
    known = len(line.tokens)
    return _may_begin(ids, line) and np.array_equal(
        ids[:known], np.fromiter(line.tokens, ids.dtype, known)
    )
