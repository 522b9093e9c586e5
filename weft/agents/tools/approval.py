"""Approval of tool calls: a person answers yes, no with a reason, or yes with other arguments.

The call is not made before a yes is recorded. Rules are in `Tool.approve` and in declarations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from weft.core.errors import ToolArgumentError, ToolDenied
from weft.core.ids import NodeId
from weft.core.ports import BoundTool, ToolRunner
from weft.core.values import JsonSchema, ToolSpec
from weft.durability.calls.digest import identity
from weft.engine.graph.node import AskHuman, NodeContext
from weft.engine.scheduler.effects import EFFECTS
from weft.validation import violation

ApprovalRule = bool | Callable[[Mapping[str, Any]], bool]
"""Whether a call needs a person's yes; a function decides by the arguments."""

_SHOWN: Final = 300
_DIGITS: Final = 12


def approval_of(runner: ToolRunner, spec: ToolSpec) -> ApprovalRule | None:
    """The rule of a tool of `runner`, or None; true where only its spec speaks of approvals."""
    rule: Callable[[str], ApprovalRule | None] | None = getattr(runner, "approval", None)
    found = None if rule is None else rule(spec.name)
    return True if found is None and spec.approve else found


def needs_approval(rule: ApprovalRule, arguments: Mapping[str, Any]) -> bool:
    """Whether the call needs a yes: unless the rule says plainly that it does not."""
    if isinstance(rule, bool):
        return rule
    try:
        return rule(arguments) is not False
    except Exception:  # noqa: BLE001 - a rule that cannot decide leaves it to the person
        return True


def answer_schema(parameters: JsonSchema) -> JsonSchema:
    """The schema of an answer: true, false, or an object: a yes may change arguments, a no say why.

    A yes with a reason is none: nothing that it says would be heeded.
    """
    own = {key: value for key, value in parameters.items() if key != "$defs"}
    properties = {"approve": {"type": "boolean"}, "reason": {"type": "string"}, "arguments": own}
    decision = {
        "type": "object",
        "properties": properties,
        "required": ["approve"],
        "additionalProperties": False,
        "if": {"properties": {"approve": {"const": True}}},
        "then": {"properties": {"reason": {"maxLength": 0}}},
    }
    schema: dict[str, Any] = {"anyOf": [{"type": "boolean"}, decision]}
    return {**schema, "$defs": parameters["$defs"]} if "$defs" in parameters else schema


async def call_approved(
    spec: ToolSpec,
    make: BoundTool,
    arguments: Mapping[str, Any],
    settle: Callable[[], Awaitable[None]] | None = None,
) -> Any:
    """Ask a person, and make the call with what they approved. `settle` makes the answer durable.

    An answer to the same call in an earlier attempt, also of a node around it, holds where the call
    cannot act a second time: a call that must not be repeated then gives its recorded result.

    Raises: `ToolDenied` after a no, or where there is no run that could ask; `ToolArgumentError`
    for other arguments that do not fit; what `make` raises.
    """
    scope = EFFECTS.get()
    if scope is None:
        raise ToolDenied(f"{spec.name} needs an approval, and there is no run that could ask")
    schema = answer_schema(spec.parameters)
    question = AskHuman(_question(spec.name, arguments), schema, None, spec.name, dict(arguments))
    about = identity("approval", spec.name, arguments)
    acts_once = spec.effect != "unknown"
    name = _node_name(about)
    answer = await scope.context.ask(question, name, about, any_attempt=acts_once)
    approved = _approved(spec, arguments, answer)
    if approved != arguments:
        scope.context.log(f"a person changed the call: {_call(spec.name, approved)}")
    if settle is not None:
        await settle()
    return await make(approved)


def arguments_made(
    context: NodeContext, node: NodeId, tool: str, arguments: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The arguments with which the ended `node` made its call of `tool`: a person's, or its own."""
    answer = context.answer_of(node, _node_name(identity("approval", tool, arguments)))
    changed = answer.get("arguments") if isinstance(answer, Mapping) else None
    return changed if isinstance(changed, Mapping) and answer.get("approve") is True else arguments


def _node_name(about: str) -> str:
    return f"approve_{about[:_DIGITS]}"


def _question(name: str, arguments: Mapping[str, Any]) -> str:
    return f"Call {_call(name, arguments)}?"


def _call(name: str, arguments: Mapping[str, Any]) -> str:
    text = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"{name}({text if len(text) <= _SHOWN else text[:_SHOWN] + '...'})"


def _approved(spec: ToolSpec, arguments: Mapping[str, Any], answer: Any) -> Mapping[str, Any]:
    decision = answer if isinstance(answer, Mapping) else {"approve": answer}
    if decision.get("approve") is not True:
        reason = decision.get("reason")
        why = f": {reason}" if isinstance(reason, str) and reason else ""
        raise ToolDenied(f"a person did not approve {spec.name}{why}")
    if "arguments" not in decision:
        return arguments
    changed: Any = decision["arguments"]
    if (wrong := violation(changed, spec.parameters)) is not None:
        raise ToolArgumentError(f"{spec.name}: the changed arguments do not fit: {wrong}")
    return dict(changed)
