"""Node functions that hold or join other nodes: map, branch, loop, included workflow, join."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.core.ids import NodeId, inside
from weft.engine import kinds
from weft.engine.graph.node import MISSING, Expand, Inputs, Join, Node, NodeContext, NodeFn
from weft.engine.kinds import Body, Fragment
from weft.workflow.compile.policy import NameBindings
from weft.workflow.document import Body as BodySpec
from weft.workflow.document.expressions import template, value_template
from weft.workflow.document.expressions.sandbox import to_json
from weft.workflow.document.inputs import check_inputs
from weft.workflow.document.spec.nodes import BranchNode, JoinNode, LoopNode, MapNode, WorkflowNode
from weft.workflow.document.unit import Unit

_EARLY = ("any", "quorum", "first_valid")


def join_of(step: JoinNode | MapNode, names: NameBindings) -> Join:
    """The engine's join."""
    valid = None
    if step.valid is not None:
        test = template(step.valid)

        def valid(value: Any) -> bool:
            return bool(test.render({**names.inputs, "value": value}))

    stands_in = "otherwise" in step.model_fields_set
    otherwise = value_template(step.otherwise).render(names.inputs) if stands_in else MISSING
    return Join(
        step.mode,
        step.k or 1,
        valid,
        otherwise,
        cancel_rest=names.settled and step.mode in _EARLY,
        counts="items" if isinstance(step, MapNode) else "branches",
    )


def join(step: JoinNode) -> NodeFn:
    """The values of the branches that won, in the order written; of a single one, the value."""

    async def work(_: NodeContext, inputs: Inputs) -> Any:
        return _value(step, [inputs[name] for name in step.join if name in inputs])

    return work


def late_join(step: JoinNode, names: NameBindings) -> NodeFn:
    """A join that has more to wait for than its branches: it begins to join once that is there."""

    async def work(context: NodeContext, _: Inputs) -> Expand:
        place = inside(context.scope, "join")
        edges = names.edges(step.join)
        node = Node(place, join(step), edges, join=join_of(step, names), kind="join")
        return Expand((node,), (place,), then=_only)

    return work


async def _only(_: NodeContext, values: Sequence[Any]) -> Any:
    return values[0]


def _value(step: JoinNode, values: list[Any]) -> Any:
    return values[0] if step.mode in ("any", "first_valid") else values


OVER = "<over>"
"""The edge that brings a map its list; not a name that a document could use."""

MakeBody = Callable[[BodySpec, NameBindings], Body]


def map_over(step: MapNode, names: NameBindings, body: MakeBody, *, streams: bool) -> NodeFn:
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


def branch(step: BranchNode, names: NameBindings, body: MakeBody) -> NodeFn:
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


def loop(step: LoopNode, names: NameBindings, body: MakeBody) -> NodeFn:
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
) -> NodeFn:
    """Run another document as one node; `inside` makes its nodes for a scope and its inputs."""
    arguments = value_template(step.arguments)
    included = unit.includes[step.workflow]

    def bindings(inputs: Inputs) -> Mapping[str, Any]:
        return check_inputs(included.document, arguments.render(inputs))

    return kinds.subgraph(inside, bindings)
