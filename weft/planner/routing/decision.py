"""Whom a dead end is put to: a model once, then a person; each asked in a node of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from weft.core.events import Outcome
from weft.core.ids import NodeId, inside
from weft.core.ports import ModelClient, Startable, UsageMeter, complete
from weft.engine.kinds import ask
from weft.engine.node import Inputs, Node, NodeContext, Policy
from weft.planner.routing.dead_end import DeadEnd
from weft.planner.routing.goal import Goal
from weft.planner.routing.router import Router


@dataclass(frozen=True, slots=True)
class Decision:
    """Go for `goal` now, with what was provided for it."""

    goal: Goal
    by: Literal["model", "person"]
    reason: str = ""
    provided: Mapping[str, Any] = field(default_factory=dict)


class Deciders:
    """Those whom `router` names. `lost` are the nodes in which nobody decided."""

    def __init__(self, router: Router, context: NodeContext) -> None:
        self._router = router
        self._context = context
        self._asked = 0
        self.model_calls = 0
        self.lost: list[NodeId] = []

    async def decide(self, dead_end: DeadEnd) -> Decision:
        """Have a model choose a lesser goal, if there is one; if it does not, ask a person.

        Raises: `RouteError` when nobody takes over.
        """
        router, nobody = self._router, "nobody could be asked"
        if router.model is not None and dead_end.choices:
            self.model_calls += 1
            outcome = await self._ask(_model(self._place(), dead_end, router.model, router))
            goal, reason = outcome.value if outcome.ok else (None, str(outcome.failure))
            if goal is not None:
                return Decision(goal, "model", reason)
            nobody = f"the model did not choose a lesser goal ({reason})"
        if router.person_s is not None:
            outcome = await self._ask(_person(self._place(), dead_end, router.person_s))
            if outcome.ok:
                goal, values = dead_end.decided(outcome.value)
                return Decision(goal, "person", provided=values)
            nobody = f"nobody answered ({outcome.failure})"
        raise dead_end.error(nobody)

    def _place(self) -> NodeId:
        self._asked += 1
        return inside(self._context.scope, f".decision{self._asked}")

    async def _ask(self, node: Node) -> Outcome:
        self._context.append([node])
        outcome = await self._context.outcome(node.id)
        if not outcome.ok:
            self.lost.append(node.id)
            self._context.log(f"{node.id} gave no decision: {outcome.failure}")
        return outcome


def _model(node: NodeId, dead_end: DeadEnd, model: ModelClient, router: Router) -> Node:
    """One call; its value is (the goal chosen or None for "escalate", the reason)."""

    async def work(context: NodeContext, _: Inputs) -> tuple[Goal | None, str]:
        if isinstance(model, Startable):
            await model.start(context.log)
        request = replace(
            dead_end.request,
            priority=context.priority,
            program=context.program,
            timeout_s=context.time_left(),
        )
        meter = UsageMeter(request)
        try:
            completion = await complete(model, request, meter=meter)
        finally:
            context.spend(meter.usage)
        return dead_end.chosen(completion.text)

    policy = Policy(
        timeout_s=router.decision_s, on_failure="skip", resource=model.model, spends=True
    )
    return Node(node, work, policy=policy, kind="model")


def _person(node: NodeId, dead_end: DeadEnd, limit_s: float) -> Node:
    """A question; its value is the answer, which still has to be checked."""
    work = ask(lambda _: dead_end.question, dead_end.answer_schema)
    return Node(node, work, policy=Policy(timeout_s=limit_s, on_failure="skip"), kind="ask")
