"""Node functions that expand or wait: map, reduce, fold, loop, branch, ask a person."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

from weft.core.errors import LoopLimit, TypeMismatch, UnknownReference
from weft.core.ids import NodeId, inside, is_name, item, iteration
from weft.engine.graph.node import (
    ALL,
    AskHuman,
    Edge,
    Expand,
    Inputs,
    Join,
    Node,
    NodeContext,
    NodeFn,
    Skip,
    StreamedItems,
    Then,
)
from weft.engine.kinds.body import Body, grow_one, instances, subgraph
from weft.engine.kinds.growth import Growth


def map_over(
    over: str,
    body: Body,
    *,
    join: Join = ALL,
    width: int | None = None,
    bound: Mapping[str, str] | None = None,
    growth: Growth | None = None,
) -> NodeFn:
    """A node function that runs `body` for each item of the list `inputs[over]`.

    At most `width` items run at once. The body gets the bindings "item" and "index"; `bound`
    renames them. The value is the list of results in the order of the items; `join` decides how
    many are needed. When the list is itself a running map on a streaming edge, each item starts as
    soon as its own source is done. With `growth` a sample of the items is first, then more.

    Raises, in the node: `TypeMismatch` when the input is not a list.
    """
    names = {"item": "item", "index": "index", **(bound or {})}

    async def work(context: NodeContext, inputs: Inputs) -> Expand:
        scope = context.scope

        def instance(index: int, value: Any) -> Node:
            bindings = {names["item"]: value, names["index"]: index}
            return _item_node(body, item(scope, index), bindings)

        if growth is not None:
            return await growth.expand(
                context, inputs, _items(inputs[over], context.node), instance, join, width
            )
        nodes = await instances(context, _items(inputs[over], context.node), instance)
        results = tuple([node.id for node in nodes])
        return Expand(nodes, results, join=join, width=width, items=True)

    return work


def _item_node(body: Body, node: NodeId, bindings: Mapping[str, Any]) -> Node:
    """One node for the whole item, so that it is counted, held back and cancelled as one."""
    fragment = body(node, bindings)
    if len(fragment.nodes) == 1 and fragment.nodes[0].id == node:
        return fragment.nodes[0]
    edges = tuple(Edge(v.source, k) for k, v in bindings.items() if isinstance(v, Edge))
    constants = {k: v for k, v in bindings.items() if not isinstance(v, Edge)}
    return Node(node, subgraph(body), edges, constants, kind="item")


def _items(value: object, node: NodeId) -> Sequence[Any]:
    if isinstance(value, StreamedItems):
        return [Edge(source) for source in value.nodes]
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return value if isinstance(value, list | tuple) else list(value)
    raise TypeMismatch(
        f"a map needs a list, not {type(value).__name__}",
        node=node,
        hint="give it a list, or wrap the value in one",
    )


def reduce_with(function: Callable[[list[Any]], Any], over: str) -> NodeFn:
    """A node function that applies `function` to the complete list `inputs[over]`."""

    async def work(context: NodeContext, inputs: Inputs) -> Any:
        async with aclosing(_values(context, inputs[over])) as source:
            values = [value async for value in source]
        result = function(values)
        return await result if inspect.isawaitable(result) else result

    return work


def fold(step: Callable[[Any, Any], Any], initial: Any, over: str) -> NodeFn:
    """A node function that folds `step(accumulated, item)` over `inputs[over]`, item by item.

    On a streaming edge it takes each item as soon as that item and those before it are done. The
    result is the same: the order is that of the items.
    """

    async def work(context: NodeContext, inputs: Inputs) -> Any:
        accumulated = initial
        async with aclosing(_values(context, inputs[over])) as source:
            async for value in source:
                accumulated = step(accumulated, value)
                if inspect.isawaitable(accumulated):
                    accumulated = await accumulated
        return accumulated

    return work


async def _values(context: NodeContext, source: Any) -> AsyncGenerator[Any, None]:
    if isinstance(source, StreamedItems):
        async with aclosing(context.items(source)) as items:
            async for value in items:
                yield value
    else:
        for value in source:
            yield value


Until = Callable[[Any, int], bool]


def loop(
    body: Body,
    *,
    until: Until,
    max_iterations: int,
    start: Callable[[Inputs], Any] | None = None,
    on_limit: str = "last",
    bound: Mapping[str, str] | None = None,
    exits: bool = False,
) -> NodeFn:
    """A node function that repeats `body` until `until(value, iteration)` is true.

    The body gets the bindings "value" (first `start(inputs)` or None, then the value of the
    iteration before) and "iteration" (from 1); `bound` renames them. The value is that of the last
    iteration. `on_limit`: after `max_iterations`, "last" takes the last value, "fail" raises
    `LoopLimit`. With `exits`, the exits of the body and its result have the values `{"break": ...,
    "value": ...}`, and the first one that breaks ends the loop with its value.
    """
    if max_iterations < 1:
        raise ValueError(f"a loop runs at least once, got {max_iterations}")
    names = {"value": "value", "iteration": "iteration", **(bound or {})}

    async def work(context: NodeContext, inputs: Inputs) -> Expand:
        return await repeat(context, start(inputs) if start else None, 1)

    async def repeat(context: NodeContext, value: Any, number: int) -> Expand:
        async def then(context: NodeContext, values: list[Any]) -> Any:
            if exits and (ends := [each for each in values if each["break"]]):
                return ends[0]["value"]
            outcome = values[-1] if values else None
            if exits and outcome is not None:
                outcome = outcome["value"]
            if until(outcome, number):
                return outcome
            if number < max_iterations:
                return await repeat(context, outcome, number + 1)
            if on_limit == "last":
                return outcome
            raise LoopLimit(
                f"the condition did not hold after {number} iterations",
                node=context.node,
                hint="raise the limit, or take the last value (on_limit: last)",
            )

        bindings = {names["value"]: value, names["iteration"]: number}
        scope = iteration(context.scope, number)
        return await grow_one(context, scope, body, bindings, then)

    return work


OTHERWISE: Final = "otherwise"
"""The scope of what a branch runs without a matching case."""


def case_names(cases: Iterable[str]) -> dict[str, str]:
    """The name of each case's scope inside a branch."""
    return {case: case if is_name(case) else f"case{i}" for i, case in enumerate(cases)}


def branch(
    choose: Callable[[Inputs], str],
    cases: Mapping[str, Body],
    *,
    otherwise: Body | None = None,
    skip_unmatched: bool = False,
) -> NodeFn:
    """A node function that runs the case that `choose(inputs)` names, and returns its value.

    Without a matching case it runs `otherwise`. Without that it leaves the node out on purpose when
    `skip_unmatched` is set, else fails with `UnknownReference`, which lists the cases.
    """
    names = case_names(cases)

    async def work(context: NodeContext, inputs: Inputs) -> Expand | Skip:
        chosen = choose(inputs)
        body = cases.get(chosen, otherwise)
        if body is not None:
            scope = inside(context.scope, names.get(chosen, OTHERWISE))
            return await grow_one(context, scope, body, {})
        if skip_unmatched:
            return Skip(f"no case for {chosen!r}")
        raise UnknownReference(
            f"no case for {chosen!r}",
            node=context.node,
            hint=f"the cases are {', '.join(map(repr, cases))}; add one, or a default",
        )

    return work


def ask(
    question: Callable[[Inputs], str],
    schema: Mapping[str, Any] | None = None,
    then: Then | None = None,
) -> NodeFn:
    """A node function that asks a person `question(inputs)` and returns `then(answer)`.

    Without `then` the answer is the value. `schema` is the JSON Schema of an answer. The engine
    does not check it; the component that collects the answer does.
    """

    async def work(_: NodeContext, inputs: Inputs) -> AskHuman:
        return AskHuman(question(inputs), schema or {}, then)

    return work
