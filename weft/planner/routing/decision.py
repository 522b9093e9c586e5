"""Whom a dead end is put to, as nodes: one call of a model, or a question to a person."""

from __future__ import annotations

from dataclasses import replace

from weft.core.ids import NodeId
from weft.core.ports import ModelClient, Startable, complete
from weft.engine.kinds import ask
from weft.engine.node import Inputs, Node, NodeContext, Policy
from weft.planner.routing.dead_end import DeadEnd
from weft.planner.routing.goal import Goal


def model_node(node: NodeId, dead_end: DeadEnd, model: ModelClient, limit_s: float) -> Node:
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
        completion = await complete(model, request)
        context.spend(completion.usage)
        return dead_end.chosen(completion.text)

    policy = Policy(timeout_s=limit_s, on_failure="skip", resource=model.model, spends=True)
    return Node(node, work, policy=policy, kind="model")


def person_node(node: NodeId, dead_end: DeadEnd, limit_s: float) -> Node:
    """A question; its value is the answer, which still has to be checked."""
    work = ask(lambda _: dead_end.question, dead_end.answer_schema)
    return Node(node, work, policy=Policy(timeout_s=limit_s, on_failure="skip"), kind="ask")
