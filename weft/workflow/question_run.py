"""One question under way: a run with a single node, whose value holds the answer.

Knows neither agents nor strategies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from weft.core.budget import Budget
from weft.core.errors import BuildError
from weft.core.events import Listener, Outcome
from weft.core.ids import NodeId, RunId, run_id
from weft.core.ports import Clock
from weft.engine import Ask, Graph, Limit, Node, Run, RunOptions, Work
from weft.workflow.result import FlowResult

T = TypeVar("T")
ANSWER = NodeId("answer")
"""The node that answers."""


@dataclass(frozen=True, slots=True)
class AskSettings:
    """How a question is run: who listens, and within which bounds.

    concurrency   at most so many calls at once
    deadline_s    seconds until the run ends with what it has
    budget        tokens, seconds and money that may be spent
    """

    listeners: Iterable[Listener] = ()
    concurrency: int | None = None
    deadline_s: float | None = None
    budget: Budget | None = None
    clock: Clock | None = None


class QuestionRun:
    """Like `FlowRun`: `wait` carries it out, `cancel` ends it.

    `flow` is what the run is called, `kind` what its node is, `identity` what tells it from others.
    """

    def __init__(
        self, flow: str, work: Work, kind: str, identity: Mapping[str, Any], settings: AskSettings
    ) -> None:
        limit = None if settings.budget is None else Limit(settings.budget)
        self._run = Run(
            Graph(flow, [Node(ANSWER, work, kind=kind)], [ANSWER]),
            RunOptions(settings.concurrency, deadline_s=settings.deadline_s, limit=limit),
            run=run_id(flow, identity),
            clock=settings.clock,
            listeners=settings.listeners,
        )
        self.outcome = Outcome("cancelled")

    def answer_in(self, value: Any) -> Any:
        """The answer that the value of the node holds."""
        return value

    async def wait(self) -> FlowResult:
        """Run to the end. The output `answer` is missing when there is none, and says why."""
        result = await self._run.wait()
        self.outcome = result.outcomes[ANSWER]
        outputs: dict[str, Any] = {}
        missing: dict[str, str] = {}
        if self.outcome.ok:
            outputs["answer"] = self.answer_in(self.outcome.value)
        else:
            missing["answer"] = self.why_not
        return FlowResult(
            result.run,
            result.status,
            outputs,
            missing,
            result.outcomes,
            result.usage,
            result.wall_s,
            result.reasons,
            result.leaked,
        )

    @property
    def id(self) -> RunId:
        """The run's id."""
        return self._run.id

    @property
    def recorded(self) -> bool:
        """False: no journal has questions of this kind."""
        return False

    @property
    def why_not(self) -> str:
        """Why there is no answer."""
        return str(self.outcome.failure or "nothing was answered")

    def cancel(self, reason: str = "cancelled") -> None:
        """End the run soon, keeping what is done; `wait` then returns."""
        self._run.cancel(reason)

    def pause(self, reason: str) -> None:
        """The same as `cancel`: nobody could go on with it."""
        self._run.cancel(reason)

    def answer(self, node: NodeId, value: Any) -> None:
        """Answer the question of `node`. Raises: `UnknownReference` when it asks none."""
        self._run.answer(node, value)

    @property
    def questions(self) -> Mapping[NodeId, Ask]:
        """The nodes that wait for a person."""
        return self._run.questions


def run_here(make: Callable[[], Coroutine[Any, Any, T]], name: str) -> T:
    """What the coroutine of `weft.<name>` comes to, in an event loop of its own.

    Raises: `BuildError` inside an event loop.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    raise BuildError(f"{name}_sync inside an event loop", hint=f"write: await weft.{name}(...)")
