"""One question under way: a run with a single node, whose value holds the answer.

Knows neither agents nor strategies, and records nothing: see `weft.workflow.question_flow`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from weft.core.budget import Budget
from weft.core.errors import BuildError
from weft.core.events import Listener, Outcome
from weft.core.ids import NodeId, run_id
from weft.core.ports import Clock
from weft.core.ports.journal import Journal
from weft.engine import Graph, Limit, Node, Run, RunOptions, Work
from weft.workflow.document.settings import Durability
from weft.workflow.result import FlowResult

T = TypeVar("T")
ANSWER = NodeId("answer")
"""The node that answers."""


@dataclass(frozen=True, slots=True)
class AskSettings:
    """How a question is run: who listens, within which bounds, and where it is recorded.

    concurrency   at most so many calls at once
    deadline_s    seconds until the run ends with what it has
    budget        tokens, seconds and money that may be spent
    journal       where it is recorded; by default in the user's own. Whoever gives it closes it
    durability    when what happened is in the journal: none, exit, async, sync
    run           the run's id; by default one that the journal does not have
    resume        a run that asked the same, to go on with: what is finished is not done again
    """

    listeners: Iterable[Listener] = ()
    concurrency: int | None = None
    deadline_s: float | None = None
    budget: Budget | None = None
    clock: Clock | None = None
    journal: Journal | None = None
    durability: Durability | None = None
    run: str | None = None
    resume: str | None = None


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
    def why_not(self) -> str:
        """Why there is no answer."""
        return str(self.outcome.failure or "nothing was answered")

    def cancel(self, reason: str = "cancelled") -> None:
        """End the run soon, keeping what is done; `wait` then returns."""
        self._run.cancel(reason)


def run_here(make: Callable[[], Coroutine[Any, Any, T]], name: str) -> T:
    """What the coroutine of `weft.<name>` comes to, in an event loop of its own.

    Raises: `BuildError` inside an event loop.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    raise BuildError(f"{name}_sync inside an event loop", hint=f"write: await weft.{name}(...)")
