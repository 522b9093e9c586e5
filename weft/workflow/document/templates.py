"""The templates of a node, and the names that each may use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from weft.workflow.document.expressions import BadExpression, Template, value_template
from weft.workflow.document.spec.document import bodies
from weft.workflow.document.spec.nodes import (
    AskNode,
    BaseNode,
    Block,
    BranchNode,
    BreakNode,
    CallNode,
    JoinNode,
    LoopNode,
    MapNode,
    ModelNode,
    ReduceNode,
    ToolNode,
    ValueNode,
    WorkflowNode,
)

Path = tuple[str | int, ...]
_NONE: frozenset[str] = frozenset()
_VALUE = frozenset(("value",))
_GROWN = frozenset(("value", "done", "failed", "total"))


@dataclass(frozen=True, slots=True)
class TemplateUse:
    """One template of a node. `bound`: names that exist only in it.

    `early`: it is computed before the run starts, from inputs only.
    """

    path: Path
    template: Template
    bound: frozenset[str] = _NONE
    early: bool = False

    @property
    def names(self) -> frozenset[str]:
        """The names that it takes from outside."""
        return self.template.names - self.bound


def template_uses(step: BaseNode) -> tuple[TemplateUse, ...]:
    """All templates of the node, without those in its bodies.

    Raises: `BadExpression`, whose `path` starts at the node.
    """
    return (*_common(step), *_own(step))


def uses_of(
    value: Any, *path: str | int, bound: frozenset[str] = _NONE, early: bool = False
) -> Iterator[TemplateUse]:
    """The templates in the `value` at `path`. Raises: `BadExpression`."""
    if value is None:
        return
    try:
        parsed = value_template(value)
    except BadExpression as error:
        error.path = (*path, *error.path)
        raise
    for inner, part in parsed.parts:
        yield TemplateUse((*path, *inner), part, bound, early)


def _common(step: BaseNode) -> Iterator[TemplateUse]:
    yield from uses_of(step.when, "when")
    yield from uses_of(step.default, "default", early=True)
    yield from uses_of(step.expect, "expect", bound=_VALUE)
    if step.writes:
        yield from uses_of(step.writes, "writes", bound=_VALUE)
    if isinstance(step, ToolNode) and isinstance(step.approve, str):
        yield from uses_of(step.approve, "approve")


def _own(step: BaseNode) -> Iterator[TemplateUse]:
    match step:
        case ToolNode() | CallNode() | WorkflowNode():
            yield from _called(step)
        case ModelNode():
            yield from _model(step)
        case ReduceNode():
            yield from uses_of(step.over, "over")
            yield from uses_of(step.arguments, "with")
        case MapNode():
            yield from uses_of(step.over, "map")
            yield from _choice(step)
        case JoinNode():
            yield from _choice(step)
        case BranchNode():
            yield from uses_of(step.branch, "branch")
        case LoopNode() | BreakNode():
            yield from _repeated(step)
        case AskNode():
            yield from uses_of(step.ask, "ask")
        case ValueNode():
            yield from uses_of(step.value, "value")


def _repeated(step: LoopNode | BreakNode) -> Iterator[TemplateUse]:
    if isinstance(step, BreakNode):
        yield from uses_of(step.condition, "break")
        yield from uses_of(step.value, "value")
        return
    yield from uses_of(step.start, "start")
    yield from uses_of(step.until, "until", bound=frozenset((step.item, "iteration")))


def _called(step: ToolNode | CallNode | WorkflowNode) -> Iterator[TemplateUse]:
    yield from uses_of(step.arguments, "with")
    if isinstance(step, WorkflowNode) and isinstance(step.seed, str):
        yield from uses_of(step.seed, "seed")
    for index, other in enumerate(step.alternatives if isinstance(step, ToolNode) else ()):
        yield from uses_of(other.arguments, "alternatives", index, "with")


def _model(step: ModelNode) -> Iterator[TemplateUse]:
    bound = frozenset(step.arguments)
    yield from uses_of(step.arguments, "with")
    yield from uses_of(step.system, "system", bound=bound)
    yield from uses_of(step.messages, "messages", bound=bound)
    yield from uses_of(step.prompt, "prompt", bound=bound)
    if step.conversation is not None:
        yield from uses_of(step.conversation.id, "conversation", bound=bound)
    if step.think is not None:
        yield from uses_of(step.think.documents, "think", "documents", bound=bound)


def _choice(step: MapNode | JoinNode) -> Iterator[TemplateUse]:
    yield from uses_of(step.valid, "valid", bound=_VALUE, early=True)
    yield from uses_of(step.otherwise, "otherwise", early=True)
    if isinstance(step, MapNode) and step.grow is not None:
        yield from uses_of(step.grow.accept, "grow", "accept", bound=_GROWN)


def names_of(step: BaseNode, *, besides: str | None = None) -> frozenset[str]:
    """The names that the node itself needs; `besides` excludes one of its fields."""
    names = (use.names for use in template_uses(step) if not use.early and use.path[0] != besides)
    return frozenset().union(*names)


def inner_names(step: BaseNode) -> frozenset[str]:
    """The names that the bodies of a node take from outside."""
    names: set[str] = set()
    for inside in bodies(step):
        body = inside.body
        if isinstance(body, Block):
            used = frozenset().union(*(use.names for use in uses_of(body.result)))
            used = used.union(*map(all_names, body.nodes.values())) - body.nodes.keys()
        else:
            used = all_names(body)
        names |= used.difference(inside.bound)
    return frozenset(names)


def all_names(step: BaseNode) -> frozenset[str]:
    """All names that a node and its bodies need."""
    joined = step.join if isinstance(step, JoinNode) else ()
    return names_of(step).union(step.after, joined, inner_names(step))
