"""Nodes of a document to nodes of the engine. Runs nothing itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.core.ids import NodeId, inside
from weft.engine import kinds
from weft.engine.kinds import Fragment
from weft.engine.node import ALL, Cache, Edge, Inputs, Join, Node, NodeContext, Skip, Work
from weft.workflow.compile import alternatives, containers, function, joining
from weft.workflow.compile.acting import act
from weft.workflow.compile.identity import Digests, cache_of, identity_of, value_identity
from weft.workflow.compile.model import model
from weft.workflow.compile.names import Names
from weft.workflow.compile.policy import policy_of, retry_of
from weft.workflow.compile.services import Services
from weft.workflow.compile.thinking import think
from weft.workflow.compile.warming import warming
from weft.workflow.document import Block, Body, Step
from weft.workflow.document.leaves import (
    AskNode,
    CallNode,
    JoinNode,
    ModelNode,
    ReduceNode,
    ToolNode,
    ValueNode,
    WorkflowNode,
)
from weft.workflow.document.nodes import BranchNode, LoopNode, MapNode
from weft.workflow.expressions import ValueTemplate, template, value_template
from weft.workflow.unit import Unit
from weft.workflow.uses import all_names, inner_names, names_of


class Compiler:
    """Makes the nodes of one document for one run."""

    def __init__(self, unit: Unit, services: Services) -> None:
        self._unit = unit
        self._services = services
        self._included: dict[str, Compiler] = {}
        self._plans: dict[int, _Plan] = {}

    # -- levels --------------------------------------------------------------------------------

    def nodes(
        self, steps: Mapping[str, Step], names: Names, scope: NodeId | None = None
    ) -> tuple[tuple[Node, ...], Names]:
        """The nodes of one level, and the names with theirs added. No scope: the top."""
        ids = {name: NodeId(name) if scope is None else inside(scope, name) for name in steps}
        settled = not _waits_to_join(steps) and (scope is None or not _needed_later(steps))
        inner = names.with_nodes(ids, settled=settled)
        stand_ins = _stand_ins(steps)
        made: list[Node] = []
        for name, step in steps.items():
            if name not in stand_ins:
                made.append(self._node(ids[name], step, inner, steps))
                made += self._warming(ids[name], step, inner)
        return tuple(made), inner

    def _warming(self, node: NodeId, step: Step, names: Names) -> tuple[Node, ...]:
        """The node that warms the server for `step`, if that is wanted and can be."""
        if not isinstance(step, ModelNode) or not step.warm or step.when is not None:
            return ()
        made = warming(node, step, names, self._unit, self._services)
        return () if made is None else (made,)

    def body(self, body: Body, names: Names) -> kinds.Body:
        """The engine's form of a body: a function that makes one instance."""

        def instance(place: NodeId, bindings: Mapping[str, Any]) -> Fragment:
            bound = names.bind(bindings)
            if not isinstance(body, Block):
                return Fragment((self._node(place, body, bound, {}),), place)
            made, inner = self.nodes(body.nodes, bound, place)
            return self._with_result(made, inner, body.result, place, "result")

        return instance

    def _with_result(
        self, nodes: tuple[Node, ...], names: Names, said: object, place: NodeId, name: str
    ) -> Fragment:
        """`nodes` with the one that carries the value; a new one, unless it is a node's own."""
        value = value_template(said)
        whole = value.whole.path if value.whole is not None else None
        if whole is not None and not whole.path and whole.name not in names.values:
            return Fragment(nodes, names.sources[whole.name])
        taken = {node.id for node in nodes}
        while (own := inside(place, name)) in taken:
            name += "_"
        carrier = Node(
            own,
            _value(value),
            names.edges(value.names),
            names.given(value.names),
            kind="value",
            identity=value_identity(said) if self._services.digests is not None else "",
        )
        return Fragment((*nodes, carrier), own)

    # -- one node ------------------------------------------------------------------------------

    def _node(self, node: NodeId, step: Step, names: Names, beside: Mapping[str, Step]) -> Node:
        plan = self._plans.get(id(step))
        if plan is None:
            plan = self._plans[id(step)] = _plan(step, self._unit, self._services.digests)
        streams = plan.streamed is not None and names.is_node(plan.streamed)
        edges = self._edges(step, plan, names, streams)
        join: Join = ALL
        if isinstance(step, JoinNode) and not edges:
            edges, join = list(names.edges(step.join)), joining.join_of(step, names)
        work = self._work(step, names, streams=streams, waits=join is ALL)
        return Node(
            node,
            work if step.when is None else _guarded(step.when, work),
            tuple(edges),
            names.given(plan.used),
            join,
            policy_of(
                step,
                names,
                self._resource(step),
                plan.cache,
                lambda other: self._node(NodeId(other), beside[other], names, beside),
            ),
            _kind(step),
            plan.identity,
        )

    def _edges(self, step: Step, plan: _Plan, names: Names, streams: bool) -> list[Edge]:
        edges = list(names.edges(plan.used))
        if streams:
            assert plan.streamed is not None
            edges = [edge for edge in edges if edge.name in plan.whole]
            edges.append(Edge(names.sources[plan.streamed], containers.OVER, stream=True))
        return edges + [Edge(names.sources[name]) for name in step.after]

    def _resource(self, step: Step) -> str | None:
        if isinstance(step, ModelNode):
            return step.model
        if isinstance(step, ToolNode):
            return self._services.tools.resource(self._unit, step.tool)
        return None

    def _work(self, step: Step, names: Names, *, streams: bool, waits: bool) -> Work:
        unit, services = self._unit, self._services
        match step:
            case ToolNode() if step.alternatives:
                return alternatives.tool(step, unit, services)
            case ToolNode():
                return function.tool(step, unit, services)
            case CallNode():
                return function.call(step, unit, services)
            case ReduceNode():
                return function.reduce(step, unit, services)
            case ModelNode():
                return _asking(step, unit, services)
            case JoinNode():
                return joining.late_join(step, names) if waits else joining.join(step)
            case AskNode():
                return kinds.ask(template(step.ask).text_for, step.output_schema)
            case ValueNode():
                return _value(value_template(step.value))
            case _:
                return self._container(step, names, streams=streams)

    def _container(self, step: Step, names: Names, *, streams: bool) -> Work:
        match step:
            case MapNode():
                return containers.map_over(step, names, self.body, streams=streams)
            case BranchNode():
                return containers.branch(step, names, self.body)
            case LoopNode():
                return containers.loop(step, names, self.body)
            case WorkflowNode():
                return containers.workflow(step, self._unit, self._include(step).whole)
            case _:
                raise AssertionError(step.kind)

    def _include(self, step: WorkflowNode) -> Compiler:
        if step.workflow not in self._included:
            unit = self._unit.includes[step.workflow]
            self._included[step.workflow] = Compiler(unit, self._services)
        return self._included[step.workflow]

    def whole(self, place: NodeId, inputs: Mapping[str, Any]) -> Fragment:
        """The whole document inside `place`; its value maps the outputs' names to their values."""
        document = self._unit.document
        made, names = self.nodes(document.nodes, Names.of_inputs(inputs), place)
        return self._with_result(made, names, document.outputs, place, "outputs")


def kept(unit: Unit) -> frozenset[NodeId]:
    """The nodes at the top that no join may cancel: they are outputs, or needed later."""
    nodes = unit.document.nodes
    names = value_template(unit.document.outputs).names | _needed_later(nodes)
    return frozenset(NodeId(name) for name in names if name in nodes)


def _needed_later(steps: Mapping[str, Step]) -> frozenset[str]:
    """The nodes of a level that are needed by what is not there yet, and so has no edges.

    That is by bodies, and by nodes that stand in for others.
    """
    names: set[str] = set()
    for step in steps.values():
        names |= inner_names(step)
    for name in _stand_ins(steps):
        names |= all_names(steps[name])
    return frozenset(name for name in names if name in steps)


def _waits_to_join(steps: Mapping[str, Step]) -> bool:
    """True when a join waits for something before it shows which branches it needs."""
    joins = (step for step in steps.values() if isinstance(step, JoinNode))
    return any(step.when is not None or step.after for step in joins)


def _stand_ins(steps: Mapping[str, Step]) -> set[str]:
    """The nodes that only run in the place of others."""
    return {name for step in steps.values() for name in (step.fallback, step.degrade) if name}


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a node needs, found once for all its instances.

    `used` are the names that its work needs; `streamed` is the one whose items a map can take one
    by one, and `whole` the names that it needs apart from that.
    """

    used: tuple[str, ...]
    streamed: str | None
    whole: frozenset[str]
    cache: Cache | None
    identity: str


def _plan(step: Step, unit: Unit, digests: Digests | None) -> _Plan:
    used = names_of(step)
    if step.cache is not None:  # what the bodies take in is part of what the result depends on
        used |= inner_names(step)
    streamed = None
    if isinstance(step, MapNode) and isinstance(step.over, str):
        path = template(step.over).path
        streamed = path.name if path is not None and not path.path else None
    whole = names_of(step, besides="map")
    identity = "" if digests is None else identity_of(step, unit, digests)
    return _Plan(tuple(sorted(used)), streamed, whole, cache_of(step, unit), identity)


def _asking(step: ModelNode, unit: Unit, services: Services) -> Work:
    if step.think is not None:
        return think(step, unit, services)
    if step.agent is not None:
        return act(step, unit, services)
    return model(step, unit, services, retry_of(step.retry))


def _kind(step: Step) -> str:
    """What people are told that a node is."""
    if isinstance(step, ModelNode):
        return "think" if step.think else "agent" if step.agent else step.kind
    return step.kind


def _guarded(condition: str, work: Work) -> Work:
    test = template(condition)

    async def guarded(context: NodeContext, inputs: Inputs) -> Any:
        if not test.render(inputs):
            return Skip(f"not {test.text.strip()}")
        return await work(context, inputs)

    return guarded


def _value(value: ValueTemplate) -> Work:
    async def work(_: NodeContext, inputs: Inputs) -> Any:
        return value.render(inputs)

    return work
