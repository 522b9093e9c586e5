"""Node functions with bodies or branches: map, branch, loop, included workflow, join."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.core.errors import RecursionLimit
from weft.core.ids import NodeId, inside
from weft.engine import kinds
from weft.engine.graph.node import MISSING, Expand, Inputs, Join, Node, NodeContext, NodeFn, Skip
from weft.engine.kinds import Body, Fragment
from weft.workflow.compile.expectations import growth_of
from weft.workflow.compile.policy import NameBindings
from weft.workflow.compile.seeds import SEED
from weft.workflow.document import Body as BodySpec
from weft.workflow.document.check.cases import case_of
from weft.workflow.document.expressions import template, value_template
from weft.workflow.document.inputs import check_inputs
from weft.workflow.document.spec.nodes import (
    BranchNode,
    BreakNode,
    JoinNode,
    LoopNode,
    MapNode,
    WorkflowNode,
)
from weft.workflow.document.unit import Unit

_EARLY = ("any", "quorum", "first_valid")


def join_of(step: JoinNode | MapNode, names: NameBindings) -> Join:
    """The engine's join of a node."""
    valid = None
    if step.valid is not None:
        test = template(step.valid)

        def valid(value: Any) -> bool:
            return bool(test.render({**names.inputs, "value": value}))

    has_default = "otherwise" in step.model_fields_set
    otherwise = value_template(step.otherwise).render(names.inputs) if has_default else MISSING
    return Join(
        step.mode,
        step.k or 1,
        valid,
        otherwise,
        cancel_rest=names.settled and step.mode in _EARLY,
        counts="items" if isinstance(step, MapNode) else "branches",
    )


def join(step: JoinNode) -> NodeFn:
    """The values of the winning branches, in the order written; of a single one, its value."""

    async def node_fn(_: NodeContext, inputs: Inputs) -> Any:
        values = [inputs[name] for name in step.join if name in inputs]
        return values[0] if step.mode in ("any", "first_valid") else values

    return node_fn


def late_join(step: JoinNode, names: NameBindings) -> NodeFn:
    """A join that first waits for other nodes than its branches, and then begins to join."""

    async def node_fn(context: NodeContext, _: Inputs) -> Expand:
        place = inside(context.scope, "join")
        edges = names.edges(step.join)
        node = Node(place, join(step), edges, join=join_of(step, names), kind="join")
        return Expand((node,), (place,), then=_only)

    return node_fn


async def _only(_: NodeContext, values: Sequence[Any]) -> Any:
    return values[0]


OVER = "<over>"
"""The edge with a map's list; impossible as a name in a document."""

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
        growth=None if step.grow is None else growth_of(step.grow),
    )
    if streams:
        return spread

    async def node_fn(context: NodeContext, inputs: Inputs) -> Any:
        return await spread(context, {OVER: over.render(inputs)})

    return node_fn


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


def loop(step: LoopNode, names: NameBindings, body: MakeBody, *, exits: bool = False) -> NodeFn:
    """Repeat the body until the condition holds; the condition sees the node's inputs.

    `exits`: the body has breaks.
    """
    start, until = value_template(step.start), template(step.until)
    repeated = body(step.loop, names)

    async def node_fn(context: NodeContext, inputs: Inputs) -> Any:
        def done(value: Any, iteration: int) -> bool:
            return bool(until.render({**inputs, step.item: value, "iteration": iteration}))

        run_loop = kinds.loop(
            repeated,
            until=done,
            max_iterations=step.max,
            start=start.render,
            on_limit=step.on_limit,
            bound={"value": step.item},
            exits=exits,
        )
        return await run_loop(context, inputs)

    return node_fn


def break_if(step: BreakNode) -> NodeFn:
    """Whether the loop ends here, and with which value."""
    test, value = template(step.condition), value_template(step.value)

    async def node_fn(_: NodeContext, inputs: Inputs) -> Mapping[str, Any]:
        ends = bool(test.render(inputs))
        return {"break": ends, "value": value.render(inputs) if ends else None}

    return node_fn


async def go_on(_: NodeContext, inputs: Inputs) -> Skip | None:
    """Skip all that waits for this node when the break before it ends the loop."""
    return Skip("the loop ended before it") if inputs["break"]["break"] else None


async def last_value(_: NodeContext, inputs: Inputs) -> Mapping[str, Any]:
    """The result of a body with breaks, as the loop reads it."""
    return {"break": False, "value": inputs["value"]}


def workflow(
    step: WorkflowNode,
    unit: Unit,
    inside: Callable[[NodeId, Mapping[str, Any]], Fragment],
    depth: int,
) -> NodeFn:
    """Run the workflow `unit` as one node; `inside` makes its nodes in a scope, from its inputs.

    `depth`: how many runs of it are around this one. Raises, in the node: `RecursionLimit`.
    """
    arguments, seed = value_template(step.arguments), value_template(step.seed)

    def bindings(inputs: Inputs) -> Mapping[str, Any]:
        if step.max_depth is not None and depth > step.max_depth:
            raise RecursionLimit(
                f"`{unit.document.name}` would run {depth} levels deep inside itself, and may run "
                f"{step.max_depth} (max_depth)",
                hint="end the recursion with `when` or a `branch`, raise `max_depth`, or give the "
                "node a `default`",
            )
        values = check_inputs(unit.document, arguments.render(inputs))
        if step.seed is not None:
            values[SEED] = seed.render(inputs)
        elif SEED in inputs:
            values[SEED] = inputs[SEED]
        return values

    return kinds.subgraph(inside, bindings)
