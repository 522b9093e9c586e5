"""Countdown problems through weft's runtime: who solved what, and what it cost. Judges strictly."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any, Final, Protocol

from evals.engine.rows import Row
from evals.intervals import share_interval
from evals.reasoning.countdown.problem import Problem, verified
from evals.reasoning.countdown.trace import Node, reached, steps_in
from weft.core.errors import ReasoningError
from weft.core.ports import Capabilities, ModelClient, ModelEvent, ModelRequest, Tokenizing
from weft.core.values import Completion, Message
from weft.reasoning.options import ThinkOptions
from weft.reasoning.protocols.apr import make
from weft.reasoning.question import Question
from weft.reasoning.strategy import run_thought
from weft.reasoning.thought import ThoughtCounts, ThreadRecord

SIDE_BY_SIDE: Final = 128


class TokenClient(ModelClient, Tokenizing, Protocol):
    """A model that takes and gives token ids."""


@dataclass(frozen=True, slots=True)
class Solved:
    """What came of one problem; `steps` are what the search claims to have found.

    `reached`: one of its threads came to a solution, whatever the end of the main one says.
    `longest` is the longest context of any of its calls, in tokens; `cut_off`: its main search did
    not come to its own end.
    """

    problem: Problem
    steps: tuple[str, ...]
    reached: bool
    counts: ThoughtCounts
    longest: int
    cut_off: bool

    @property
    def right(self) -> bool:
        """Whether the steps solve the problem, by the strict verifier."""
        return verified(self.problem, self.steps)


async def solve_all(
    model: TokenClient,
    problems: Sequence[Problem],
    settings: Mapping[str, Any],
    seed: int = 0,
    *,
    condition: str = "",
) -> list[Solved]:
    """The problems in order, `SIDE_BY_SIDE` of them at a time, with APR's published messages.

    `condition` stands before each. A model that never spawns runs through the same code: so does
    the sequential twin. A problem to which no answer comes is not solved.
    """
    gate = asyncio.Semaphore(SIDE_BY_SIDE)
    options = thinking(settings, seed)

    async def solve(problem: Problem) -> Solved:
        async with gate:
            watched = _Watched(model)
            question = Question(condition + Node.root(problem).opening)
            try:
                thought = await run_thought(make(watched, options), question)
            except ReasoningError as error:
                print(f"{problem}: {error}", file=sys.stderr, flush=True)
                return Solved(problem, (), False, ThoughtCounts(), watched.longest, True)
        return Solved(
            problem,
            tuple(steps_in(thought.answer)),
            any(verified(problem, steps) for steps in goals(thought.tree)),
            thought.counts,
            watched.longest,
            bool(thought.why),
        )

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(solve(problem)) for problem in problems]
    return [task.result() for task in tasks]


def goals(record: ThreadRecord | None) -> Iterator[tuple[str, ...]]:
    """The steps to every goal in a tree of threads."""
    if record is not None:
        yield from reached(record.text)
        for fork in record.forks:
            for child in fork.children:
                yield from goals(child)


def thinking(settings: Mapping[str, Any], seed: int = 0) -> ThinkOptions:
    """Greedy, and with no cap but the model's window: the searches end by themselves."""
    given = dict(settings)
    return ThinkOptions(
        width=64,
        budget=10_000_000,
        depth=1,
        rounds=64,
        max_tokens=100_000,
        answer_tokens=1,
        temperature=given.pop("temperature", 0.0),
        seed=seed,
        settings={"messages": "nodes", **given},
    )


def rows_of(case: str, system: str, solved: Sequence[Solved]) -> list[Row]:
    """Accuracy in percent, and means over the problems."""
    counts = [one.counts for one in solved]
    return [
        *share_rows(case, system, "accuracy", [one.right for one in solved]),
        Row(case, system, "reached", 100 * mean(one.reached for one in solved), "%"),
        Row(case, system, "claimed", 100 * mean(bool(one.steps) for one in solved), "%"),
        Row(case, system, "cut_off", 100 * mean(one.cut_off for one in solved), "%"),
        Row(case, system, "total_tokens", mean(c.total_tokens for c in counts), "tokens"),
        Row(
            case,
            system,
            "critical_path_tokens",
            mean(c.critical_path_tokens for c in counts),
            "tokens",
        ),
        Row(case, system, "calls", mean(c.requests for c in counts), "calls"),
        Row(case, system, "children", mean(c.threads - 1 for c in counts), "threads"),
        Row(case, system, "longest_context", mean(one.longest for one in solved), "tokens"),
    ]


def share_rows(case: str, system: str, metric: str, right: Sequence[bool]) -> list[Row]:
    """How many of `right` are, in percent, and its 95 % interval."""
    low, high = share_interval(right)
    return [
        Row(case, system, metric, 100 * mean(right), "%"),
        Row(case, system, f"{metric}_low", 100 * low, "%"),
        Row(case, system, f"{metric}_high", 100 * high, "%"),
    ]


@dataclass(slots=True)
class _Watched:
    """Passes everything on to `model`, and notes the longest context that a call came to."""

    inner: TokenClient
    longest: int = field(default=0, init=False)

    @property
    def model(self) -> str:
        return self.inner.model

    async def capabilities(self) -> Capabilities:
        return await self.inner.capabilities()

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        async for event in self.inner.generate(request):
            if isinstance(event, Completion):
                used = len(request.prompt_token_ids) + len(event.token_ids)
                self.longest = max(self.longest, used)
            yield event

    async def encode(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        return await self.inner.encode(text, special=special)

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        return await self.inner.encode_chat(messages, chat_template_kwargs=chat_template_kwargs)

    async def decode(self, token_ids: tuple[int, ...]) -> str:
        return await self.inner.decode(token_ids)

    async def special_token(self, text: str) -> int | None:
        return await self.inner.special_token(text)

    async def aclose(self) -> None:
        """Whoever made the model closes it."""
