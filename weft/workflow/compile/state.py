"""Nodes of the engine that write and read a workflow's state.

The state is no shared object. A writer has a node `NAME.writes` beside it, whose value is the list
of its checked writes; a reader has a node `NAME.state`, which waits for the writers that it sees
and folds their lists in the order of the file. So the order in which nodes end changes nothing, and
a record of a run has every write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from weft.core.errors import UnknownReference
from weft.core.events import SUBSTITUTES, Outcome
from weft.core.ids import NodeId, attempt, inside, item, iteration
from weft.engine.graph.node import Edge, Inputs, Node, NodeContext, NodeFn
from weft.engine.kinds.functions import OTHERWISE, case_names
from weft.workflow.compile.identity import value_identity
from weft.workflow.compile.policy import NameBindings
from weft.workflow.compile.reducers import Write, folded, initial_state, writes_id, written
from weft.workflow.document import BaseNode, Block, Body, NodeSpec
from weft.workflow.document.expressions import value_template
from weft.workflow.document.spec.nodes import BranchNode, LoopNode, MapNode
from weft.workflow.document.state_order import (
    STATE,
    Fields,
    StateOrder,
    replaced_nodes,
    writes_inside,
)

BASE: Final = "<state>"
"""The state at the start of a level; impossible as a name in a document."""
_BEFORE: Final = "before"
KIND: Final = "state"


class StateNodes:
    """Makes the state's nodes of one document with `fields`.

    `top`: the nodes of the document. `recalls`: whether nodes have identities.
    """

    def __init__(self, fields: Fields, top: Mapping[str, BaseNode], *, recalls: bool) -> None:
        self._fields = fields
        self._top = top
        self._recalls = recalls
        self._orders: dict[int, StateOrder] = {}
        self._alone: dict[int, Mapping[str, NodeSpec]] = {}

    def order(self, steps: Mapping[str, Any]) -> StateOrder:
        """The order of one level; the document keeps `steps`, and so its id, alive."""
        found = self._orders.get(id(steps))
        if found is None:
            found = self._orders[id(steps)] = StateOrder.of(steps, self._fields)
        return found

    def level(self, body: Body) -> Mapping[str, NodeSpec] | None:
        """The level of a body that writes; None for one that does not."""
        if isinstance(body, Block):
            return body.nodes if self.order(body.nodes).writers else None
        if id(body) not in self._alone:
            self._alone[id(body)] = {body.kind: body}
        alone = self._alone[id(body)]
        return alone if self.order(alone).writers else None

    # -- names ---------------------------------------------------------------------------------

    def sources(
        self, steps: Mapping[str, BaseNode], outer: NameBindings, scope: NodeId | None
    ) -> dict[str, NodeId]:
        """The sources of the state at one level: at its end, for its result, and at its start."""
        if steps is self._top:
            return {STATE: NodeId(STATE) if scope is None else inside(scope, STATE)}
        if scope is None or STATE not in outer.sources or not self.order(steps).writers:
            return {}
        return {STATE: inside(scope, "state-after"), BASE: outer.sources[STATE]}

    def names_for(
        self, name: str, steps: Mapping[str, BaseNode], names: NameBindings
    ) -> NameBindings:
        """The names of the node `name`: the state is what it sees."""
        order = self.order(steps)
        if not self._is_own(steps, names):
            return names
        if name in order.readers:
            return names.with_nodes({STATE: _state_id(names.sources[name])}, settled=names.settled)
        return names.without(STATE) if writes_inside(steps[name]) else names

    def _is_own(self, steps: Mapping[str, BaseNode], names: NameBindings) -> bool:
        """Whether the nodes of a level see a state of its own."""
        return steps is self._top or (BASE in names.sources and bool(self.order(steps).writers))

    # -- nodes ---------------------------------------------------------------------------------

    def beside(
        self, name: str, steps: Mapping[str, BaseNode], names: NameBindings
    ) -> tuple[Node, ...]:
        """The nodes of the state for the node `name`: what it sees, and what it writes."""
        order, step = self.order(steps), steps[name]
        made: list[Node] = []
        owned = [other for other, owner in replaced_nodes(steps).items() if owner == name]
        for reader in (name, *owned) if self._is_own(steps, names) else ():
            if reader in order.readers:
                seen = [names.sources[writer] for writer in order.seen(reader)]
                place = _state_id(names.sources[reader])
                made.append(self._fold(place, seen, names, sorted(order.readers[reader])))
        if name in order.writers:
            made.append(self._writer(names.sources[name], step, self.names_for(name, steps, names)))
        return tuple(made)

    def end(self, steps: Mapping[str, BaseNode], names: NameBindings) -> Node:
        """The node of the state at the end of a level."""
        writers = [names.sources[name] for name in self.order(steps).writers]
        return self._fold(names.sources[STATE], writers, names, sorted(self._fields))

    def waits(self, steps: Mapping[str, BaseNode], names: NameBindings) -> tuple[Edge, ...]:
        """Edges of order from all writes of a level, for its result."""
        writers = (names.sources[name] for name in self.order(steps).writers)
        return tuple(Edge(writes_id(writer), optional=True) for writer in writers)

    def start(
        self, steps: Mapping[str, BaseNode], place: NodeId, names: NameBindings
    ) -> tuple[tuple[Node, ...], NameBindings]:
        """The state at the start of a body's instance, and the names with it.

        An iteration of a loop sees what those before it wrote.
        """
        loop, _, count = place.rpartition("#")
        if STATE not in names.sources or not count.isdigit():
            return (), names
        number, own = int(count), inside(place, "state-before")
        before, writers = iteration(NodeId(loop), number - 1), list(self.order(steps).writers)
        fields = self._fields

        async def node_fn(context: NodeContext, inputs: Inputs) -> Mapping[str, Any]:
            if number == 1:
                return dict(inputs[_BEFORE])
            start = await context.outcome(inside(before, "state-before"))
            return folded(fields, start.value, await _writes_in(context, before, writers))

        edges = (Edge(names.sources[STATE], _BEFORE),)
        node = Node(own, node_fn, edges, kind=KIND, recallable=False)
        return (node,), names.with_nodes({STATE: own}, settled=names.settled)

    def carrier(self, place: NodeId, source: NodeId, waits: tuple[Edge, ...]) -> Node:
        """A node with the value of `source`, once all writes are there."""
        identity = value_identity({KIND: "result"}) if self._recalls else ""
        edges = (Edge(source, "value"), *waits)
        return Node(inside(place, "state-result"), _carry, edges, kind="value", identity=identity)

    def _fold(
        self, place: NodeId, writers: Sequence[NodeId], names: NameBindings, read: Sequence[str]
    ) -> Node:
        fields, own = self._fields, [f"writes-{index}" for index in range(len(writers))]

        async def node_fn(_: NodeContext, inputs: Inputs) -> Mapping[str, Any]:
            start = inputs.get(_BEFORE)
            if start is None:
                start = initial_state(fields, read)
            writes = (write for name in own for write in inputs[name] or ())
            return folded(fields, {name: start[name] for name in start if name in read}, writes)

        edges = [
            Edge(writes_id(writer), name, optional=True)
            for writer, name in zip(writers, own, strict=True)
        ]
        if BASE in names.sources:
            edges.append(Edge(names.sources[BASE], _BEFORE))
        identity = ""
        if self._recalls:
            specs = {name: fields[name].model_dump(mode="json") for name in read}
            identity = value_identity({KIND: specs})
        return Node(place, node_fn, tuple(edges), kind=KIND, identity=identity)

    def _writer(self, node: NodeId, step: BaseNode, names: NameBindings) -> Node:
        parsed = value_template(dict(step.writes))
        used = sorted(parsed.names - {"value"})
        edges = (Edge(node, "value"), *names.edges(used))
        given = names.given(used)
        own = self._own_writes(node, step)
        if not writes_inside(step):
            identity = ""
            if self._recalls:
                specs = {name: self._fields[name].model_dump(mode="json") for name in step.writes}
                identity = value_identity({"writes": dict(step.writes), KIND: specs})
            return Node(writes_id(node), own, edges, given, kind=KIND, identity=identity)

        async def node_fn(context: NodeContext, inputs: Inputs) -> list[Write]:
            inner = await self._inner_writes(context, node, step)
            return [*inner, *await own(context, inputs)]

        return Node(writes_id(node), node_fn, edges, given, kind=KIND, recallable=False)

    def _own_writes(self, node: NodeId, step: BaseNode) -> NodeFn:
        """The function of the writes that a node itself declares."""
        parsed, fields = value_template(dict(step.writes)), self._fields

        async def node_fn(_: NodeContext, inputs: Inputs) -> list[Write]:
            values = parsed.render(inputs)
            return [written(name, fields[name], values[name], node) for name in step.writes]

        return node_fn

    async def _inner_writes(
        self, context: NodeContext, node: NodeId, step: BaseNode
    ) -> list[Write]:
        """The writes inside a container that has ended, in declared order; none of a substitute."""
        own = await context.outcome(node)
        found: list[Write] = []
        if own.via in SUBSTITUTES:
            return found
        scope = attempt(node, own.attempts)
        match step:
            case MapNode():
                index, writers = 0, self._writers(step.do)
                while (ended := await _ended(context, item(scope, index))) is not None:
                    if ended.ok:
                        found += await _writes_in(context, item(scope, index), writers)
                    index += 1
            case LoopNode():
                number, writers = 1, self._writers(step.loop)
                while await _ended(
                    context, writes_id(inside(iteration(scope, number), writers[0]))
                ):
                    found += await _writes_in(context, iteration(scope, number), writers)
                    number += 1
            case BranchNode():
                names = case_names(case for case in step.cases if case != "default")
                for case, body in step.cases.items():
                    place = inside(scope, names.get(case, OTHERWISE))
                    found += await _writes_in(context, place, self._writers(body))
        return found

    def _writers(self, body: Body) -> list[str]:
        level = self.level(body)
        return [] if level is None else [*self.order(level).writers]


def _state_id(node: NodeId) -> NodeId:
    return NodeId(f"{node}.state")


async def _writes_in(context: NodeContext, place: NodeId, writers: Sequence[str]) -> list[Write]:
    """The recorded writes of `writers` in one instance of a body."""
    found: list[Write] = []
    for name in writers:
        ended = await _ended(context, writes_id(inside(place, name)))
        if ended is not None and ended.ok:
            found += ended.value
    return found


async def _ended(context: NodeContext, node: NodeId) -> Outcome | None:
    """The end of a node; None where the run has no such node."""
    try:
        return await context.outcome(node)
    except UnknownReference:
        return None


async def _carry(_: NodeContext, inputs: Inputs) -> Any:
    return inputs["value"]
