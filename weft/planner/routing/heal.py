"""Self-healing routes as node functions, and as one call for a program in Python."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from weft.core.errors import EffectUnknown, Failure, RouteError, RunError, UnknownReference
from weft.core.events import Event, HumanAsked, Listener
from weft.core.ids import NodeId
from weft.core.ports import Clock
from weft.core.values import JsonSchema
from weft.engine import Graph, Node, Run, RunOptions
from weft.engine.graph.node import Inputs, NodeContext, NodeFn
from weft.engine.scheduler.effects import is_unknown
from weft.planner.routing.executor import RouteExecutor
from weft.planner.routing.goal import Goal, RouteGoal, goal_of
from weft.planner.routing.result import RouteResult
from weft.planner.routing.router import ToolRouter

Person = Callable[[str, JsonSchema], Awaitable[Any]]
"""Answers a question with a value that fits the schema."""


def healing(
    router: ToolRouter,
    goal: Goal | str,
    lesser: Sequence[Goal | str] = (),
    *,
    partial: bool = True,
) -> NodeFn:
    """A work whose inputs are what there is, by name, and whose value is an `RouteResult`.

    Each call is a node inside it, which a failure is answered in by a logged reroute, or by an
    escalation. `lesser` goals, best first, and with `partial` a part of what is wanted, are what
    may be settled for. The work fails with `RouteError` when no way is left and nobody takes over.

    Raises: what `ToolRouter.check` raises.
    """
    target = RouteGoal(goal_of(goal), tuple(map(goal_of, lesser)), partial)
    router.check(target)

    async def work(context: NodeContext, inputs: Inputs) -> Any:
        return await RouteExecutor(router, target, context, inputs).run()

    return work


async def heal(
    router: ToolRouter,
    goal: Goal | str,
    have: Mapping[str, Any] | None = None,
    *,
    lesser: Sequence[Goal | str] = (),
    partial: bool = True,
    person: Person | None = None,
    options: RunOptions | None = None,
    listeners: Iterable[Listener] = (),
    clock: Clock | None = None,
) -> RouteResult:
    """Reach one goal: from what there is, `have`, to the goal.

    `person` answers what is asked of a person; the router's `person_s` says for how long.

    Raises: `RouteError` when it ended without a goal; `EffectUnknown` where it ended since nobody
    knows whether a call that must not be repeated was carried out; what `ToolRouter.check` raises.
    """
    work = healing(router, goal, lesser, partial=partial)
    node = Node(NodeId("heal"), work, given=have or {}, kind="route")
    questions: list[HumanAsked] = []
    asked = asyncio.Event()

    def listen(event: Event) -> None:
        if isinstance(event, HumanAsked):
            questions.append(event)
            asked.set()

    run = Run(
        Graph("heal", [node]), options or RunOptions(), clock=clock, listeners=[*listeners, listen]
    )
    async with asyncio.TaskGroup() as group:
        answering = group.create_task(_answer(run, questions, asked, person))
        try:
            result = await run.wait()
        finally:
            answering.cancel()
    outcome = result.outcomes[node.id]
    if outcome.ok and isinstance(outcome.value, RouteResult):
        return outcome.value
    raise _error(outcome.failure)


async def _answer(
    run: Run, questions: list[HumanAsked], asked: asyncio.Event, person: Person | None
) -> None:
    """Hand on the questions of `run`, one after the other. One that nobody can answer waits."""
    while person is not None:
        await asked.wait()
        asked.clear()
        while questions:
            question = questions.pop(0)
            try:
                answer = await person(question.question, question.schema)
                run.answer(question.node, answer)
            except UnknownReference:  # it was answered, or its time was up
                continue
            except Exception as error:  # noqa: BLE001 - whoever answers may fail in any way
                run.cancel(f"the person failed to answer: {error!r}", question.node)


def _error(failure: Failure | None) -> RunError:
    if failure is None:
        return RouteError("the route was left out")
    if is_unknown(failure):
        return EffectUnknown(failure.message, hint=failure.hint)
    kind = "" if failure.error == "RouteError" else f"{failure.error}: "
    return RouteError(f"{kind}{failure.message}", hint=failure.hint)
