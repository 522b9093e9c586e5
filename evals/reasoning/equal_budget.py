"""Strategies at equal cost: the same questions, one model, so many tokens or so long a path.

"To Backtrack or Not to Backtrack" (arXiv 2504.07052) asks for this: a search is compared with as
many direct samples as its tokens would have paid for. Knows no task and no server.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from weft.core.errors import WeftError
from weft.core.ports import ModelClient
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.strategies import make_strategy
from weft.reasoning.strategy import run_thought
from weft.reasoning.thought import Thought

Right = Callable[[str, str | None], bool]
"""Whether an answer is right, from its text and its key."""


@dataclass(frozen=True, slots=True)
class Item:
    """A question, and whether an answer to it is right."""

    name: str
    question: Question
    right: Right


@dataclass(frozen=True, slots=True)
class Contender:
    """A strategy under the name that the table gives it, with its own settings."""

    system: str
    strategy: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Terms:
    """What everybody gets: a sample is at most `sample_tokens` long.

    At equal tokens all may generate `width` times that much in all. At equal latency the critical
    path is at most `sample_tokens` long, however many tokens are generated beside it.
    """

    sample_tokens: int
    width: int
    temperature: float = 0.7
    seed: int = 0

    def equal_tokens(self, contender: Contender) -> ThinkOptions:
        """Options under which `contender` may generate as many tokens as any other."""
        return replace(self._options(contender), budget=self.sample_tokens * self.width)

    def equal_latency(self, contender: Contender) -> ThinkOptions:
        """Options under which no critical path is longer than that of any other."""
        return replace(self._options(contender), path_tokens=self.sample_tokens)

    def _options(self, contender: Contender) -> ThinkOptions:
        return ThinkOptions(
            width=self.width,
            rounds=4 * self.width,
            max_tokens=self.sample_tokens,
            answer_tokens=self.sample_tokens // 2 or 1,
            temperature=self.temperature,
            seed=self.seed,
            settings=contender.settings,
        )


@dataclass(frozen=True, slots=True)
class Result:
    """What one contender made of one item. `thought` is None where it came to no answer.

    `any_right`: whether one of its samples was right, whichever was chosen.
    """

    item: str
    thought: Thought | None
    right: bool
    any_right: bool
    wall_s: float
    why: str = ""


async def compete(
    model: ModelClient,
    contender: Contender,
    items: Sequence[Item],
    options: ThinkOptions,
) -> AsyncIterator[Result]:
    """The results of `contender`, item after item, one at a time."""
    strategy = make_strategy(contender.strategy, model, options)
    for item in items:
        begun = time.perf_counter()
        try:
            thought = await run_thought(strategy, item.question)
        except WeftError as error:
            wall_s = time.perf_counter() - begun
            yield Result(item.name, None, False, False, wall_s, str(error))
            continue
        wall_s = time.perf_counter() - begun
        right = item.right(thought.answer, thought.key)
        among = any(item.right(sample.text, sample.key) for sample in thought.samples)
        yield Result(item.name, thought, right, right or among, wall_s, thought.why)
