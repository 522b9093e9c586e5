"""Plans of nodes: what all instances of a node have in common, in all runs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.agents.tools.toolbox import ToolSettings
from weft.engine import kinds
from weft.engine.graph.node import (
    MODEL_RETRY,
    Inputs,
    Node,
    NodeCache,
    NodeContext,
    NodeFn,
    Policy,
    Retry,
    Skip,
)
from weft.workflow.compile import containers, expectations, node_functions
from weft.workflow.compile.identity import Digests, cache_of, identity_of
from weft.workflow.compile.policy import NameBindings, policy_of, retry_of
from weft.workflow.document import BaseNode, Block
from weft.workflow.document.expressions import ValueTemplate, template, value_template
from weft.workflow.document.spec.document import bodies, walk, walk_placed
from weft.workflow.document.spec.nodes import (
    AskNode,
    BreakNode,
    CallNode,
    JoinNode,
    MapNode,
    ModelNode,
    ReduceNode,
    ToolNode,
    ValueNode,
)
from weft.workflow.document.templates import inner_names, names_of, template_uses, uses_of
from weft.workflow.document.unit import Unit

Resources = Mapping[tuple[Unit, str], ToolSettings]
"""The resource class and the retry of each tool, by its name in a unit."""


@dataclass(frozen=True, slots=True)
class NodePlan:
    """The needs and functions of a node.

    `used`: the names that its function needs; `streamed`: the one whose items a map can take one by
    one, and `whole` the other names. `retry`: that of its tool. `node_fn` and `policy` are those of
    every instance; None where they depend on the instance.
    """

    used: tuple[str, ...]
    streamed: str | None
    whole: frozenset[str]
    cache: NodeCache | None
    identity: str
    kind: str
    resource: str | None
    retry: Retry | None
    node_fn: NodeFn | None
    policy: Policy | None


class NodePlans:
    """The plans of the nodes of one document. Without `digests` nodes have no identities.

    `on`: the pool that the nodes around the document give its tool calls, if any.
    """

    def __init__(
        self,
        unit: Unit,
        resources: Resources,
        digests: Digests | None,
        cached: Digests,
        on: str | None = None,
    ) -> None:
        self._unit = unit
        self._on = {id(step): pool for _, step, pool in walk_placed(unit.document.nodes, on)}
        self._resources = resources
        self._digests = digests
        self._cached = cached
        self._plans: dict[int, NodePlan] = {}  # `unit` keeps the nodes, and so their ids, alive

    def of(self, step: BaseNode) -> NodePlan:
        """The plan of a node of the document."""
        plan = self._plans.get(id(step))
        if plan is None:
            plan = self._plans[id(step)] = self._plan(step)
        return plan

    def on(self, step: BaseNode) -> str | None:
        """The pool that the nodes around `step` give its tool calls, if any."""
        return self._on[id(step)]

    def _plan(self, step: BaseNode) -> NodePlan:
        unit, digests = self._unit, self._digests
        used = names_of(step, besides="writes")
        if step.cache is not None:  # the result depends on what the bodies use, too
            used |= inner_names(step)
        cache = cache_of(step, unit, self._cached)
        node_fn = self._node_fn(step)
        resource, own = self._settings(step)
        return NodePlan(
            tuple(sorted(used)),
            _streamed(step),
            names_of(step, besides="map"),
            cache,
            "" if digests is None else identity_of(step, unit, digests),
            _kind(step),
            resource,
            own,
            None if node_fn is None else guarded(step, node_fn),
            policy_of(step, NameBindings(), resource, cache, _no_replacement, own)
            if is_shared(step)
            else None,
        )

    def _settings(self, step: BaseNode) -> ToolSettings:
        if isinstance(step, ModelNode):
            return ToolSettings(step.model)
        if isinstance(step, ToolNode):
            return self._resources[self._unit, step.tool]
        return ToolSettings()

    def _node_fn(self, step: BaseNode) -> NodeFn | None:
        """The function of a node without bodies; None where each instance has its own."""
        unit, on = self._unit, self.on(step)
        match step:
            case ToolNode() if step.alternatives:
                from weft.workflow.compile import alternatives

                return alternatives.tool(step, unit, lambda tool: self._resources[unit, tool], on)
            case ToolNode():
                return node_functions.tool(step, unit, on)
            case CallNode():
                return node_functions.call(step, unit)
            case ReduceNode():
                return node_functions.reduce(step, unit)
            case ModelNode():
                return _model(step, unit, on)
            case AskNode():
                return kinds.ask(template(step.ask).text_for, step.output_schema)
            case BreakNode():
                return containers.break_if(step)
            case ValueNode():
                return value(value_template(step.value))
            case _:
                return None


def is_shared(step: BaseNode) -> bool:
    """Whether all instances of a node may share one policy, and one default of a join.

    A default that is a list or a mapping is made for each run, which may change it.
    """
    if step.fallback or step.degrade:
        return False
    defaults = [step.default] if step.has_default else []
    if isinstance(step, MapNode | JoinNode) and "otherwise" in step.model_fields_set:
        defaults.append(step.otherwise)
    parsed = [value_template(each) for each in defaults]
    return not any(each.names or isinstance(each.tree, dict | list) for each in parsed)


def mentioned_names(step: BaseNode) -> frozenset[str]:
    """All names in the templates of a node and of its bodies, in any scope."""
    names: set[str] = set()
    for _, inner in walk({"": step}):
        names.update(*(use.template.names for use in template_uses(inner)))
        for inside in bodies(inner):
            if isinstance(inside.body, Block):
                names.update(*(use.template.names for use in uses_of(inside.body.result)))
    return frozenset(names)


def guarded(step: BaseNode, node_fn: NodeFn) -> NodeFn:
    """`node_fn`, skipped where the condition of its node does not hold; its value is checked."""
    node_fn = expectations.checked(step, node_fn)
    if step.when is None:
        return node_fn
    test = template(step.when)

    async def run(context: NodeContext, inputs: Inputs) -> Any:
        if not test.render(inputs):
            return Skip(f"not {test.text.strip()}")
        return await node_fn(context, inputs)

    return run


def value(parsed: ValueTemplate) -> NodeFn:
    """A node function that computes a value from others."""

    async def node_fn(_: NodeContext, inputs: Inputs) -> Any:
        return parsed.render(inputs)

    return node_fn


def _streamed(step: BaseNode) -> str | None:
    if not isinstance(step, MapNode) or not isinstance(step.over, str):
        return None
    path = template(step.over).path
    return path.name if path is not None and not path.path else None


def _model(step: ModelNode, unit: Unit, on: str | None) -> NodeFn:
    if step.think is not None:
        from weft.workflow.compile.think import think

        return think(step, unit, on)
    if step.agent is not None:
        from weft.workflow.compile.agent import act

        return act(step, unit, on)
    from weft.workflow.compile.model import model

    return model(step, unit, retry_of(step) or MODEL_RETRY)


def _kind(step: BaseNode) -> str:
    """The kind of a node, as people see it."""
    if isinstance(step, ModelNode):
        return "think" if step.think else "agent" if step.agent else step.kind
    return step.kind


def _no_replacement(name: str) -> Node:
    raise AssertionError(name)
