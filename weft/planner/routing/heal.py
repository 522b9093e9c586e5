"""Self-healing routes as node functions, and as a call for Python programs."""

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
    """A node function from the available values, by name, to a `RouteResult`.

    Each call is a node inside it; a failure leads to a logged reroute, or to an escalation.
    `lesser` goals, best first, and with `partial` a part of the wants, are accepted substitutes.
    The node fails with `RouteError` when no route is left and no decision is made.

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
    """Reach one goal from the values in `have`.

    `person` answers questions to a person, within the router's `person_s`.

    Raises: `RouteError` without a goal; `EffectUnknown` where it is unknown whether a call that
    must not be repeated was made; what `ToolRouter.check` raises.
    """
    work = healing(router, goal, lesser, partial=partial)
    node = Node(NodeId("heal"), work, given=have or {}, kind="route")
    questions: list[HumanAsked] = []
    has_question = asyncio.Event()

    def listen(event: Event) -> None:
        if isinstance(event, HumanAsked):
            questions.append(event)
            has_question.set()

    run = Run(
        Graph("heal", [node]), options or RunOptions(), clock=clock, listeners=[*listeners, listen]
    )
    async with asyncio.TaskGroup() as group:
        answer_task = group.create_task(_answer(run, questions, has_question, person))
        try:
            result = await run.wait()
        finally:
            answer_task.cancel()
    outcome = result.outcomes[node.id]
    if outcome.ok and isinstance(outcome.value, RouteResult):
        return outcome.value
    raise _error(outcome.failure)


async def _answer(
    run: Run, questions: list[HumanAsked], has_question: asyncio.Event, person: Person | None
) -> None:
    """Answer the questions of `run` by `person`, in sequence; without one they wait."""
    while person is not None:
        await has_question.wait()
        has_question.clear()
        while questions:
            question = questions.pop(0)
            try:
                answer = await person(question.question, question.schema)
                run.answer(question.node, answer)
            except UnknownReference:  # already answered, or timed out
                continue
            except Exception as error:  # noqa: BLE001 - the callback may raise anything
                run.cancel(f"the person failed to answer: {error!r}", question.node)


def _error(failure: Failure | None) -> RunError:
    if failure is None:
        return RouteError("the route was left out")
    if is_unknown(failure):
        return EffectUnknown(failure.message, hint=failure.hint)
    kind = "" if failure.error == "RouteError" else f"{failure.error}: "
    return RouteError(f"{kind}{failure.message}", hint=failure.hint)
