"""A whole plan as a graph of its own: what its steps come to without an agent around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.core.errors import NodeFailed
from weft.core.ids import NodeId
from weft.core.ports import ToolRunner
from weft.engine import ALL, Edge, Graph, Inputs, Node, NodeContext, Skip, best_effort
from weft.planner.compile import Call, follow, step_node
from weft.planner.plan import Here, Plan, PlanStep, Ref
from weft.planner.text.writer import write_ref

JOIN = NodeId("join")


def calling(tools: ToolRunner) -> Call:
    """Calls `tools`, and nothing else."""

    async def call(_: NodeContext, step: PlanStep, arguments: Mapping[str, Any]) -> Any:
        return await tools.call(step.tool, arguments)

    return call


def graph_of(plan: Plan, tools: ToolRunner, name: str = "plan") -> Graph:
    """The graph of a whole plan: a node `s3` for step 3, and `join`, whose value answers.

    That is the one result that `join` names; of several, or of all steps, a mapping by how they
    are referred to, without those left out on purpose.

    Raises: `UnknownReference` for a plan that `weft.planner.check` would refuse.
    """
    sources = {step.number: NodeId(f"s{step.number}") for step in plan.steps}
    streams = [step.number for step in plan.steps if step.over is not None]
    call = calling(tools)
    nodes = [
        step_node(step, call, sources[step.number], sources, streams=streams) for step in plan.steps
    ]
    return Graph(name, (*nodes, _join(plan, sources)), keep=(JOIN,))


def _join(plan: Plan, sources: Mapping[int, NodeId]) -> Node:
    results = plan.results or tuple(Ref(step.number) for step in plan.steps)
    numbers = dict.fromkeys(ref.source for ref in results if isinstance(ref.source, int))
    needed = {number: sources[number] for number in numbers}

    async def work(context: NodeContext, _: Inputs) -> Any:
        values: dict[int | Here, Any] = {}
        for number, node in needed.items():
            outcome = await context.outcome(node)
            if outcome.failure is not None and not outcome.ok:
                raise NodeFailed(f"step {number} {outcome.status}: {outcome.failure}")
            if outcome.ok:
                values[number] = outcome.value
        there = [ref for ref in results if ref.source in values]
        if len(results) != 1:
            return {write_ref(ref): follow(ref, values) for ref in there}
        return follow(there[0], values) if there else Skip("its result was left out")

    edges = tuple(Edge(node) for node in needed.values())
    return Node(JOIN, work, edges, join=best_effort() if edges else ALL, kind="join")
