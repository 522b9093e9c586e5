"""Name bindings of nodes; failure, time and budget settings as the engine's policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from weft.core.budget import Budget
from weft.core.ids import NodeId
from weft.core.values import constructor
from weft.engine.graph.node import (
    MISSING,
    MODEL_RETRY,
    BudgetLimit,
    Edge,
    Node,
    NodeCache,
    Policy,
    Retry,
)
from weft.workflow.document.expressions import value_template
from weft.workflow.document.spec.declarations import ToolUse
from weft.workflow.document.spec.nodes import BaseNode, ModelNode, ToolNode
from weft.workflow.document.spec.settings import BudgetSpec, RetrySpec
from weft.workflow.document.unit import Unit


@dataclass(frozen=True, slots=True)
class NameBindings:
    """`inputs`: the workflow's own; `values`: those and outer items; `sources`: nodes by name.

    `settled`: edges show every use of the nodes around, so that a join may cancel branches that it
    does not need. `depths`: how many runs of each other workflow are around.
    """

    inputs: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, NodeId] = field(default_factory=dict)
    settled: bool = True
    depths: Mapping[Unit, int] = field(default_factory=dict)

    @classmethod
    def of_inputs(
        cls, inputs: Mapping[str, Any], depths: Mapping[Unit, int] | None = None
    ) -> NameBindings:
        """The names at the top of a workflow."""
        return cls(inputs, inputs, depths=depths or {})

    def of_run(self, inputs: Mapping[str, Any]) -> NameBindings:
        """The same names at the top, for a run with other inputs."""
        return NameBindings(inputs, inputs, self.sources, self.settled)

    def bind(self, bindings: Mapping[str, Any]) -> NameBindings:
        """These bindings with the names of a body: values, or `Edge`s to their nodes."""
        edges = {name: edge.source for name, edge in bindings.items() if isinstance(edge, Edge)}
        values = {name: value for name, value in bindings.items() if name not in edges}
        sources = {**self.sources, **edges} if edges else self.sources
        return _names(self.inputs, {**self.values, **values}, sources, self.settled, self.depths)

    def with_nodes(self, nodes: Mapping[str, NodeId], *, settled: bool) -> NameBindings:
        """These bindings with the nodes of one more level."""
        settled = settled and self.settled
        return replace(self, sources={**self.sources, **nodes}, settled=settled)

    def without(self, name: str) -> NameBindings:
        """These bindings without the node `name`."""
        rest = {other: source for other, source in self.sources.items() if other != name}
        return replace(self, sources=rest)

    def is_node(self, name: str) -> bool:
        """True when the value of `name` comes from a node."""
        return name in self.sources and name not in self.values

    def edges(self, names: Iterable[str]) -> tuple[Edge, ...]:
        """An edge for each of `names` that is a node."""
        return tuple(Edge(self.sources[name], name) for name in names if self.is_node(name))

    def given(self, names: Iterable[str]) -> dict[str, Any]:
        """The values of those of `names` that have one."""
        return {name: self.values[name] for name in names if name in self.values}


_names = constructor(NameBindings)  # one for each item of a map


def policy_of(
    step: BaseNode,
    names: NameBindings,
    resource: str | None,
    cache: NodeCache | None,
    replacement: Callable[[str], Node],
    own: Retry | None = None,
) -> Policy:
    """The policy of one node. `replacement` makes its fallback or degrade node, by name.

    `own`: the retry of the tool that it calls, for a node that declares none. A model call without
    one is repeated after 429, 5xx and lost connections.

    The calls of a node with samples, a strategy, an agent or alternative tools are nodes with their
    own policies; a node with a strategy or an agent is retried as a whole.
    """
    samples = isinstance(step, ModelNode) and step.samples is not None
    thinks = isinstance(step, ModelNode) and bool(step.think or step.agent)
    choices = isinstance(step, ToolNode) and bool(step.alternatives)
    own = own if own is not None or thinks or not isinstance(step, ModelNode) else MODEL_RETRY
    return Policy(
        timeout_s=None if choices else step.timeout,
        retry=None if samples or choices else retry_of(step) or own,
        fallback=replacement(step.fallback) if step.fallback else None,
        default=value_template(step.default).render(names.inputs) if step.has_default else MISSING,
        on_failure=step.on_failure,
        resource=None if samples or thinks or choices else resource,
        cache=cache,
        limit=limit_of(step.budget),
        spends=isinstance(step, ModelNode),
        degrade=replacement(step.degrade) if step.degrade else None,
        weight=step.weight,
    )


def retry_of(step: BaseNode | ToolUse) -> Retry | None:
    """The engine's retry of a node, or of a declared tool; None where neither is declared."""
    if step.retry is None and step.retry_on is None:
        return None
    retry, on = step.retry or RetrySpec(), tuple(step.retry_on or ())
    return Retry(retry.attempts, retry.delay, retry.factor, retry.max_delay, retry.jitter, on)


def limit_of(budget: BudgetSpec | None) -> BudgetLimit | None:
    """The engine's limit of a budget."""
    if budget is None:
        return None
    return BudgetLimit(Budget(budget.tokens, budget.time, budget.money), budget.on_reached)
