"""Compiles plan steps to engine nodes; resolves references and conditions.

A step with a false condition is skipped, and so are the steps that refer to it. A step that fails,
or is skipped because of a failure, also skips its dependents, with a reason that names it.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from weft.core.errors import BudgetExceeded, TypeMismatch, UnknownReference
from weft.core.ids import NodeId
from weft.engine import (
    Edge,
    Inputs,
    Node,
    NodeContext,
    NodeFn,
    Policy,
    Skip,
    StreamedItems,
)
from weft.engine.graph.node import DEFAULT_POLICY
from weft.engine.kinds import Body, Fragment, map_over
from weft.planner.plan import Here, PlanStep, Ref, StepCondition, Value
from weft.planner.text.writer import write_ref

Results = Mapping[int | Here, Any]
"""The values of references: results of steps by number, and the item and index of a map."""

_TESTS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def follow(ref: Ref, results: Results) -> Any:
    """The value of `ref`.

    Raises: `UnknownReference` when its path does not exist; the message says what does.
    """
    if ref.source not in results:
        raise UnknownReference(f"${ref.source} means nothing here", hint="refer to earlier steps")
    value = results[ref.source]
    for depth, step in enumerate(ref.path):
        if not _has(value, step):
            owner = write_ref(Ref(ref.source, ref.path[:depth]))
            raise UnknownReference(
                f"{write_ref(ref)} does not exist: {owner} is {described(value)}",
                hint="refer to what is there",
            )
        value = value[step]
    return value


def _has(value: Any, step: str | int) -> bool:
    if isinstance(step, str):
        return isinstance(value, Mapping) and step in value
    return _is_list(value) and -len(value) <= step < len(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def described(value: Any) -> str:
    """A short description of `value`."""
    if isinstance(value, Mapping):
        there = ", ".join(map(str, list(value)[:20]))
        return f"an object with {there}" if there else "an empty object"
    if _is_list(value):
        return f"a list of {len(value)}"
    if value is None or isinstance(value, bool):
        return str(json.dumps(value))
    return "a text" if isinstance(value, str) else "a number"


def resolve(value: Value, results: Results) -> Any:
    """`value` as plain JSON data, with the values of its references.

    Raises: `UnknownReference`.
    """
    if isinstance(value, Ref):
        return follow(value, results)
    if isinstance(value, Mapping):
        return {name: resolve(item, results) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [resolve(item, results) for item in value]
    return value


def holds(condition: StepCondition, results: Results) -> bool:
    """Whether the condition is true; alone, null, false, 0 and empty values count as false.

    Raises: `UnknownReference`; `TypeMismatch` when the two sides have no order.
    """
    value = follow(condition.ref, results)
    if condition.operator == "":
        return bool(value)
    if condition.operator == "not":
        return not value
    literal = resolve(condition.literal, {})
    try:
        return _TESTS[condition.operator](value, literal)
    except TypeError:
        raise TypeMismatch(
            f"{write_ref(condition.ref)} is {described(value)}: no order with {literal!r:.60}",
            hint="compare values of one kind",
        ) from None


Call = Callable[[NodeContext, PlanStep, Mapping[str, Any]], Awaitable[Any]]
"""Makes the call of a step, with its arguments as plain JSON data."""

MAX_ITEMS: Final = 1000
_OVER: Final = "over"


def step_node(
    step: PlanStep,
    call: Call,
    node: NodeId,
    sources: Mapping[int, NodeId],
    *,
    policy: Policy = DEFAULT_POLICY,
    streams: Collection[int] = (),
    max_items: int = MAX_ITEMS,
) -> Node:
    """The node of a step, which starts once the results it refers to exist.

    `sources` are the nodes of the steps it refers to. A map becomes a node that appends one node
    for each item, at most `max_items`, under `policy`; if its source is in `streams`, itself a map,
    it takes each item as soon as it is there.
    """
    over = step.over
    if over is None:
        edges = _edges(step, sources)
        return Node(node, _once(step, call), edges, policy=policy, kind="tool")
    work = _for_each(step, over, call, policy, max_items)
    around = Policy(on_failure=policy.on_failure)
    if over.path or not isinstance(over.source, int) or over.source not in streams:
        return Node(node, work, _edges(step, sources), policy=around, kind="map")
    items = Edge(_source(over.source, sources), _OVER, stream=True)
    edges = (*_edges(replace(step, over=None), sources), items)
    return Node(node, work, edges, policy=around, kind="map")


def _edges(step: PlanStep, sources: Mapping[int, NodeId]) -> tuple[Edge, ...]:
    """The results that the step uses, and then the steps that it only waits for."""
    used = [Edge(_source(number, sources), f"s{number}") for number in step.sources]
    waited = [Edge(_source(n, sources)) for n in step.after if n not in step.sources]
    return (*used, *waited)


def _source(number: int, sources: Mapping[int, NodeId]) -> NodeId:
    try:
        return sources[number]
    except KeyError:
        raise UnknownReference(
            f"there is no step {number}", hint="refer to steps that the plan has"
        ) from None


def _results(step: PlanStep, inputs: Inputs) -> dict[int | Here, Any]:
    """The inputs of a step's node, by step number."""
    return {number: inputs[f"s{number}"] for number in step.sources if f"s{number}" in inputs}


def _once(step: PlanStep, call: Call) -> NodeFn:
    async def work(context: NodeContext, inputs: Inputs) -> Any:
        results = _results(step, inputs)
        if step.when is not None and not holds(step.when, results):
            return _left_out(step)
        return await call(context, step, resolve(step.arguments, results))

    return work


def _for_each(step: PlanStep, over: Ref, call: Call, policy: Policy, max_items: int) -> NodeFn:
    async def work(context: NodeContext, inputs: Inputs) -> Any:
        results = _results(step, inputs)
        if step.when is not None and not holds(step.when, results):
            return _left_out(step)
        items = inputs[_OVER] if _OVER in inputs else follow(over, results)
        _check_items(step, items, max_items)
        spread = map_over(_OVER, _item(step, call, results, policy))
        return await spread(context, {_OVER: items})

    return work


def _item(step: PlanStep, call: Call, results: Results, policy: Policy) -> Body:
    """The node of one item. The value of the item may be pending; its index is known."""

    async def work(context: NodeContext, inputs: Inputs) -> Any:
        here: Results = {**results, "item": inputs["item"], "index": inputs["index"]}
        return await call(context, step, resolve(step.arguments, here))

    def body(place: NodeId, bindings: Mapping[str, Any]) -> Fragment:
        edges = tuple(Edge(v.source, k) for k, v in bindings.items() if isinstance(v, Edge))
        given = {k: v for k, v in bindings.items() if not isinstance(v, Edge)}
        return Fragment((Node(place, work, edges, given, policy=policy, kind="tool"),), place)

    return body


def _check_items(step: PlanStep, items: Any, max_items: int) -> None:
    if isinstance(items, StreamedItems):
        items = items.nodes
    if not isinstance(items, (list, tuple)):
        raise TypeMismatch(
            f"step {step.number} is done for each item of a list, not of {described(items)}",
            hint="refer to a list",
        )
    if len(items) > max_items:
        raise BudgetExceeded(
            f"step {step.number} would make {len(items)} calls, {max_items} are allowed",
            hint="refer to a shorter list",
        )


def _left_out(step: PlanStep) -> Skip:
    return Skip(f"the condition of step {step.number} does not hold")
