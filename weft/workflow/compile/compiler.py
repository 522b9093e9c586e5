"""Compilation of a document's nodes to nodes of the engine, independent of any run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from weft.core.ids import NodeId, inside
from weft.engine import kinds
from weft.engine.graph.node import ALL, Edge, Join, Node, NodeFn, make_node
from weft.engine.kinds import Fragment
from weft.workflow.compile import containers
from weft.workflow.compile.identity import Digests, value_identity
from weft.workflow.compile.node_functions import warming
from weft.workflow.compile.node_plan import NodePlan, NodePlans, Resources, guarded, value
from weft.workflow.compile.policy import NameBindings, policy_of
from weft.workflow.compile.seeds import SEED, seed_binding
from weft.workflow.compile.state import StateNodes
from weft.workflow.document import BaseNode, Block, Body
from weft.workflow.document.breaks import RESULT, breaks_before
from weft.workflow.document.expressions import ValueTemplate, value_template
from weft.workflow.document.spec.nodes import (
    BranchNode,
    BreakNode,
    JoinNode,
    LoopNode,
    MapNode,
    ModelNode,
    WorkflowNode,
)
from weft.workflow.document.state_order import STATE
from weft.workflow.document.templates import all_names, inner_names
from weft.workflow.document.unit import Unit


class LevelPlan(NamedTuple):
    """The common part of all instances of one level of nodes.

    `settled`: whether edges show every use of the nodes, at the top and inside of a node. `running`
    excludes nodes that only replace others. `breaks`: the last break before each node, if any.
    """

    settled: tuple[bool, bool]
    running: tuple[str, ...]
    breaks: Mapping[str, str]


class CompiledResult(NamedTuple):
    """The value of a block or of a document, with the identity of the node that computes it."""

    value: ValueTemplate
    identity: str


class Compiler:
    """Makes the nodes of one document, for any number of runs.

    Their common parts are computed once. `resources` are those of all tools of `unit` and of its
    included files; `digests` are used in the identities of nodes (None: they have none), `cached`
    in those of cached results. `on`: the pool that the nodes around give the document's tool calls.
    """

    def __init__(
        self,
        unit: Unit,
        resources: Resources,
        digests: Digests | None,
        cached: Digests,
        compilers: dict[tuple[Unit, str | None], Compiler] | None = None,
        on: str | None = None,
    ) -> None:
        self._unit = unit
        self._compilers = {} if compilers is None else compilers  # one for each unit and pool
        self._compilers[unit, on] = self
        self._surroundings = resources, digests, cached
        self._recalls = digests is not None
        self._plans = NodePlans(unit, resources, digests, cached, on)
        document = unit.document
        self._state: StateNodes | None = None
        if document.state:
            self._state = StateNodes(document.state, document.nodes, recalls=self._recalls)
        self._levels: dict[int, LevelPlan] = {}
        self._results: dict[int, CompiledResult] = {}

    # -- levels --------------------------------------------------------------------------------

    def level(self, steps: Mapping[str, BaseNode]) -> LevelPlan:
        """The plan of one level of the document."""
        plan = self._levels.get(id(steps))
        if plan is None:
            breaks = breaks_before(steps)
            settled = not _waits_to_join(steps, breaks)
            both = settled, settled and not _needed_later(steps)
            replacements = _replacements(steps)
            running = tuple(name for name in steps if name not in replacements)
            plan = self._levels[id(steps)] = LevelPlan(both, running, breaks)
        return plan

    def nodes(
        self, steps: Mapping[str, BaseNode], names: NameBindings, scope: NodeId | None = None
    ) -> tuple[tuple[Node, ...], NameBindings]:
        """The nodes of one level, and the names with those nodes. No scope: the top."""
        inner = self.names(steps, names, scope)
        plan = self.level(steps)
        if plan.breaks:
            made = [self._beside_breaks(name, steps, inner, plan.breaks) for name in plan.running]
        else:
            made = [self.of_step(name, steps, inner) for name in plan.running]
        return tuple(chain.from_iterable(made)), inner

    def names(
        self, steps: Mapping[str, BaseNode], outer: NameBindings, scope: NodeId | None = None
    ) -> NameBindings:
        """The names of one level: outer names, and its own nodes."""
        ids = {name: NodeId(name) if scope is None else inside(scope, name) for name in steps}
        if self._state is not None:
            ids |= self._state.sources(steps, outer, scope)
        settled = self.level(steps).settled[scope is not None]
        return outer.with_nodes(ids, settled=settled)

    def of_step(
        self,
        name: str,
        steps: Mapping[str, BaseNode],
        names: NameBindings,
        gate: NodeId | None = None,
    ) -> tuple[Node, ...]:
        """The node of a step, and those beside it: for its state, and to warm its prompt prefix.

        `names` includes all of `steps`. `gate`: a node to wait for as well.
        """
        if self._state is not None:
            beside = self._state.beside(name, steps, names)
            return (*self._of_step(name, steps, self._seen(name, steps, names), gate), *beside)
        return self._of_step(name, steps, names, gate)

    def end(self, steps: Mapping[str, BaseNode], names: NameBindings) -> tuple[Node, ...]:
        """The node of the state at the end of a level that has one."""
        return () if self._state is None else (self._state.end(steps, names),)

    def _seen(self, name: str, steps: Mapping[str, BaseNode], names: NameBindings) -> NameBindings:
        """The names of one node of `steps`, which may see another state than the rest."""
        return names if self._state is None else self._state.names_for(name, steps, names)

    def _of_step(
        self,
        name: str,
        steps: Mapping[str, BaseNode],
        names: NameBindings,
        gate: NodeId | None,
    ) -> tuple[Node, ...]:
        step = steps[name]
        node = self._node(names.sources[name], step, names, steps, gate)
        if not isinstance(step, ModelNode) or not step.warm or step.when is not None:
            return (node,)
        warm = warming(node.id, step, names, self._unit)
        if warm is not None and gate is not None:
            warm = replace(warm, edges=(*warm.edges, Edge(gate)))
        return (node,) if warm is None else (node, warm)

    def _beside_breaks(
        self,
        name: str,
        steps: Mapping[str, BaseNode],
        names: NameBindings,
        breaks: Mapping[str, str],
    ) -> tuple[Node, ...]:
        """The nodes of a step in a loop's body with breaks; a break's include its gate."""
        gate = _gate(names.sources[breaks[name]]) if name in breaks else None
        made = self.of_step(name, steps, names, gate)
        if not isinstance(steps[name], BreakNode):
            return made
        ends = names.sources[name]
        edges, identity = (Edge(ends, "break"),), self._fixed_identity("go on")
        return (
            *made,
            Node(_gate(ends), containers.go_on, edges, kind="break", identity=identity),
        )

    def body(self, body: Body, names: NameBindings) -> kinds.Body:
        """The engine's form of a body: a function that makes one instance."""
        if self._state is not None and (level := self._state.level(body)) is not None:
            return self._body_with_writes(body, level, names)

        def instance(place: NodeId, bindings: Mapping[str, Any]) -> Fragment:
            bound = names.bind(bindings)
            if not isinstance(body, Block):
                return Fragment((self._node(place, body, bound, {}),), place)
            made, inner = self.nodes(body.nodes, bound, place)
            return self._with_result(made, inner, self._result(body, body.result), place, "result")

        return instance

    def _body_with_writes(
        self, body: Body, level: Mapping[str, BaseNode], names: NameBindings
    ) -> kinds.Body:
        """The form of a body whose nodes write the state; its result waits for all writes."""
        state = self._state
        assert state is not None
        result = self._result(body, body.result) if isinstance(body, Block) else None

        def instance(place: NodeId, bindings: Mapping[str, Any]) -> Fragment:
            before, bound = state.start(level, place, names.bind(bindings))
            made, inner = self.nodes(level, bound, place)
            nodes, waits = (*before, *made), state.waits(level, inner)
            if result is None:
                (alone,) = level
                carrier = state.carrier(place, inner.sources[alone], waits)
                return Fragment((*nodes, carrier), carrier.id)
            if STATE in result.value.names and STATE in bound.sources:
                nodes += self.end(level, inner)
            return self._with_result(nodes, inner, result, place, "result", waits)

        return instance

    def body_with_breaks(self, body: Body, names: NameBindings) -> kinds.Body:
        """The form of a loop's body that has breaks: they, and the result, may end the loop."""
        assert isinstance(body, Block)
        breaks = [name for name, step in body.nodes.items() if isinstance(step, BreakNode)]
        last, identity = self.level(body.nodes).breaks[RESULT], self._fixed_identity("last value")

        def instance(place: NodeId, bindings: Mapping[str, Any]) -> Fragment:
            made, inner = self.nodes(body.nodes, names.bind(bindings), place)
            result = self._result(body, body.result)
            gate = Edge(_gate(inner.sources[last]))
            whole = self._with_result(made, inner, result, place, "result")
            *nodes, carrier = whole.nodes
            if len(whole.nodes) > len(made):
                nodes.append(replace(carrier, edges=(*carrier.edges, gate)))
            else:
                nodes.append(carrier)
            own = inside(place, "last-value")  # impossible as a name in a document
            edges = (Edge(whole.result, "value"), gate)
            nodes.append(Node(own, containers.last_value, edges, kind="value", identity=identity))
            return Fragment(tuple(nodes), own, tuple(inner.sources[name] for name in breaks))

        return instance

    def _fixed_identity(self, what: str) -> str:
        """The identity of a node whose function is always the same."""
        return value_identity({"loop": what}) if self._recalls else ""

    def _result(self, owner: object, value: object) -> CompiledResult:
        """The value of `owner`, a block or a document."""
        result = self._results.get(id(owner))
        if result is None:
            identity = value_identity(value) if self._recalls else ""
            result = self._results[id(owner)] = CompiledResult(value_template(value), identity)
        return result

    def _with_result(
        self,
        nodes: tuple[Node, ...],
        names: NameBindings,
        result: CompiledResult,
        place: NodeId,
        name: str,
        waits: tuple[Edge, ...] = (),
    ) -> Fragment:
        """`nodes` with a node for the value; a new one, unless it is exactly one node's value.

        `waits`: edges of order, for which it is always a new one.
        """
        template = result.value
        whole = template.whole.path if template.whole is not None else None
        if not waits and whole is not None and not whole.path and whole.name not in names.values:
            return Fragment(nodes, names.sources[whole.name])
        taken = {node.id for node in nodes}
        while (own := inside(place, name)) in taken:
            name += "_"
        edges, given = (*names.edges(template.names), *waits), names.given(template.names)
        carrier = Node(own, value(template), edges, given, kind="value", identity=result.identity)
        return Fragment((*nodes, carrier), own)

    # -- one node ------------------------------------------------------------------------------

    def _node(
        self,
        node: NodeId,
        step: BaseNode,
        names: NameBindings,
        level: Mapping[str, BaseNode],
        gate: NodeId | None = None,
    ) -> Node:
        plan = self._plans.of(step)
        streams = plan.streamed is not None and names.is_node(plan.streamed)
        edges = self._edges(step, plan, names, streams)
        if gate is not None:
            edges += (Edge(gate),)
        join: Join = ALL
        if isinstance(step, JoinNode) and not edges:
            edges, join = names.edges(step.join), containers.join_of(step, names)
        node_fn = plan.node_fn
        if node_fn is None:
            own = self._node_fn(step, names, streams=streams, waits=join is ALL)
            node_fn = guarded(step, own)
        policy = plan.policy
        if policy is None:
            policy = policy_of(
                step,
                names,
                plan.resource,
                plan.cache,
                lambda other: self._node(
                    NodeId(other), level[other], self._seen(other, level, names), level
                ),
                plan.retry,
            )
        given = names.given(plan.used)
        if SEED in names.values and isinstance(step, (ModelNode, WorkflowNode)):
            given[SEED] = names.values[SEED]
        return make_node(node, node_fn, edges, given, join, policy, plan.kind, plan.identity)

    def _edges(
        self, step: BaseNode, plan: NodePlan, names: NameBindings, streams: bool
    ) -> tuple[Edge, ...]:
        edges = names.edges(plan.used)
        if streams:
            assert plan.streamed is not None
            whole = tuple(edge for edge in edges if edge.name in plan.whole)
            over = Edge(names.sources[plan.streamed], containers.OVER, stream=True)
            edges = (*whole, over)
        if step.after:
            edges += tuple(Edge(names.sources[name]) for name in step.after)
        return edges

    def _node_fn(
        self, step: BaseNode, names: NameBindings, *, streams: bool, waits: bool
    ) -> NodeFn:
        """The function of a node that depends on the instance."""
        match step:
            case JoinNode():
                return containers.late_join(step, names) if waits else containers.join(step)
            case MapNode():
                return containers.map_over(step, names, self.body, streams=streams)
            case BranchNode():
                return containers.branch(step, names, self.body)
            case LoopNode():
                exits = isinstance(step.loop, Block) and bool(self.level(step.loop.nodes).breaks)
                body = self.body_with_breaks if exits else self.body
                return containers.loop(step, names, body, exits=exits)
            case WorkflowNode():
                return self._workflow(step, names)
            case _:
                raise AssertionError(step.kind)

    def _workflow(self, step: WorkflowNode, names: NameBindings) -> NodeFn:
        unit = self._unit.includes[step.workflow]
        on = step.on or self._plans.on(step)
        compiler = self._compilers.get((unit, on))
        if compiler is None:
            compiler = Compiler(unit, *self._surroundings, self._compilers, on)
        whole = partial(compiler.whole, self._unit, names.depths, step.seed is not None)
        depth = names.depths.get(unit, 0) + (unit is self._unit)
        return containers.workflow(step, unit, whole, depth)

    def whole(
        self,
        caller: Unit,
        depths: Mapping[Unit, int],
        seeded: bool,
        place: NodeId,
        inputs: Mapping[str, Any],
    ) -> Fragment:
        """The whole document inside `place`; its value maps output names to values.

        `depths`: the runs of each workflow around that of `caller`. `seeded`: its node has a seed.
        """
        if seeded:
            inputs = {**inputs, SEED: seed_binding(inputs[SEED], place)}
        document = self._unit.document
        around = {**depths, caller: depths.get(caller, 0) + 1}
        made, names = self.nodes(document.nodes, NameBindings.of_inputs(inputs, around), place)
        result = self._result(document, document.outputs)
        waits: tuple[Edge, ...] = ()
        if self._state is not None:
            made += self.end(document.nodes, names)
            waits = self._state.waits(document.nodes, names)
        return self._with_result(made, names, result, place, "outputs", waits)


def kept_nodes(unit: Unit) -> frozenset[NodeId]:
    """The top-level nodes that no join may cancel: they are outputs, or needed later."""
    nodes = unit.document.nodes
    names = value_template(unit.document.outputs).names | _needed_later(nodes)
    state = {NodeId(STATE)} if unit.document.state else set()
    return frozenset(NodeId(name) for name in names if name in nodes) | state


def _needed_later(steps: Mapping[str, BaseNode]) -> frozenset[str]:
    """The nodes of a level that are needed by nodes that do not exist yet, and so have no edges.

    These are needed by bodies, and by replacements.
    """
    names: set[str] = set()
    for step in steps.values():
        names |= inner_names(step)
    for name in _replacements(steps):
        names |= all_names(steps[name])
    return frozenset(name for name in names if name in steps)


def _gate(ends: NodeId) -> NodeId:
    """The node that what comes after the break `ends` waits for."""
    return inside(ends, "go-on")


def _waits_to_join(steps: Mapping[str, BaseNode], breaks: Mapping[str, str]) -> bool:
    """True when a join waits for other nodes before it has edges from its branches."""
    joins = ((name, step) for name, step in steps.items() if isinstance(step, JoinNode))
    return any(step.when is not None or step.after or name in breaks for name, step in joins)


def _replacements(steps: Mapping[str, BaseNode]) -> frozenset[str]:
    """The nodes that only replace others."""
    return frozenset(
        name for step in steps.values() for name in (step.fallback, step.degrade) if name
    )
