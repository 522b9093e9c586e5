"""Works that hold other nodes: map, branch, loop, included workflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.core.ids import NodeId
from weft.engine import kinds
from weft.engine.kinds import Body, Fragment
from weft.engine.node import Inputs, NodeContext, Work
from weft.workflow.compile.joining import join_of
from weft.workflow.compile.names import Names
from weft.workflow.document import Body as BodySpec
from weft.workflow.document.leaves import WorkflowNode
from weft.workflow.document.nodes import BranchNode, LoopNode, MapNode
from weft.workflow.expressions import template, value_template
from weft.workflow.expressions.filters import to_json
from weft.workflow.inputs import check_inputs
from weft.workflow.unit import Unit

OVER = "<over>"
"""The edge that brings a map its list; not a name that a document could use."""

MakeBody = Callable[[BodySpec, Names], Body]


def map_over(step: MapNode, names: Names, body: MakeBody, *, streams: bool) -> Work:
    """Run the body for every item; with `streams`, the list arrives on the edge `OVER`."""
    over = value_template(step.over)
    spread = kinds.map_over(
        OVER,
        body(step.do, names),
        join=join_of(step, names),
        width=step.width,
        bound={"item": step.item},
    )
    if streams:
        return spread

    async def work(context: NodeContext, inputs: Inputs) -> Any:
        return await spread(context, {OVER: over.render(inputs)})

    return work


def branch(step: BranchNode, names: Names, body: MakeBody) -> Work:
    """Run the body of the case that the value names."""
    value = value_template(step.branch)
    cases = {name: body(case, names) for name, case in step.cases.items()}
    otherwise = cases.pop("default", None)
    return kinds.branch(
        lambda inputs: case_of(value.render(inputs)),
        cases,
        otherwise=otherwise,
        skip_unmatched=True,
    )


def case_of(value: Any) -> str:
    """The name of the case for a value: texts as they are, `true`, `false`, `null`, numbers."""
    return value if isinstance(value, str) else to_json(value)


def loop(step: LoopNode, names: Names, body: MakeBody) -> Work:
    """Repeat the body until the condition holds, which sees what the node sees."""
    start, until = value_template(step.start), template(step.until)
    repeated = body(step.loop, names)

    async def work(context: NodeContext, inputs: Inputs) -> Any:
        def done(value: Any, iteration: int) -> bool:
            return bool(until.render({**inputs, step.item: value, "iteration": iteration}))

        turning = kinds.loop(
            repeated,
            until=done,
            max_iterations=step.max,
            start=start.render,
            on_limit=step.on_limit,
            bound={"value": step.item},
        )
        return await turning(context, inputs)

    return work


def workflow(
    step: WorkflowNode, unit: Unit, inside: Callable[[NodeId, Mapping[str, Any]], Fragment]
) -> Work:
    """Run another document as one node; `inside` makes its nodes for a scope and its inputs."""
    arguments = value_template(step.arguments)
    included = unit.includes[step.workflow]

    def bindings(inputs: Inputs) -> Mapping[str, Any]:
        return check_inputs(included.document, arguments.render(inputs))

    return kinds.subgraph(inside, bindings)
