"""The fold of writes into a workflow's state. Pure; the order of the writes is the caller's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.core.errors import TypeMismatch
from weft.core.events import Outcome
from weft.core.ids import NodeId
from weft.engine.graph.content_digest import content_text
from weft.validation import violation
from weft.workflow.document.spec.state import StateField

Write = Sequence[Any]
"""`[field, value]`, as it is recorded."""
Fields = Mapping[str, StateField]


def initial_state(fields: Fields, names: Iterable[str] | None = None) -> dict[str, Any]:
    """The values before anything is written, of all fields or of `names`."""
    chosen = fields if names is None else names
    return {name: field.start for name, field in fields.items() if name in chosen}


def written(name: str, field: StateField, value: Any, node: str) -> Write:
    """One checked write of `node`. Raises: `TypeMismatch` where it does not fit the field."""
    why = violation(value, field.written)
    if why is not None:
        how = f"`{field.reduce}` of " if field.reduce else ""
        hint = f"write another value to `{name}` under `writes`, or change its `type`"
        raise TypeMismatch(f"{how}`state.{name}` cannot take this: {why}", node=node, hint=hint)
    return [name, value]


def writes_id(node: NodeId) -> NodeId:
    """The node with the writes of `node`."""
    return NodeId(f"{node}.writes")


def final_state(
    fields: Fields, nodes: Iterable[str], outcomes: Mapping[NodeId, Outcome]
) -> dict[str, Any]:
    """The state of a run that has ended: all writes of the top-level `nodes` that are recorded."""
    ends = (outcomes.get(writes_id(NodeId(name))) for name in nodes if fields)
    writes = [write for end in ends if end is not None and end.ok for write in end.value]
    try:
        return folded(fields, initial_state(fields), writes)
    except TypeMismatch:  # the run has failed, and says so
        return initial_state(fields)


def folded(fields: Fields, state: Mapping[str, Any], writes: Iterable[Write]) -> dict[str, Any]:
    """`state` after `writes`; those of fields that it lacks count for others.

    Raises: `TypeMismatch` for a field whose whole value no longer fits its type.
    """
    after, touched = dict(state), set()
    for name, value in writes:
        if name in after:
            after[name] = _reduced(fields[name].reduce, after[name], value)
            touched.add(name)
    for name in touched:
        if fields[name].reduce is not None and (why := violation(after[name], fields[name].type)):
            hint = "let its `type` take what the reducer makes"
            raise TypeMismatch(f"`state.{name}` does not fit its type any more: {why}", hint=hint)
    return after


def _reduced(reducer: str | None, before: Any, value: Any) -> Any:
    match reducer:
        case "append":
            return [*(before or ()), value]
        case "extend":
            return [*(before or ()), *value]
        case "union":
            found: dict[str, Any] = {}
            for each in [*(before or ()), *value]:
                found.setdefault(content_text(each), each)
            return list(found.values())
        case "add":
            return (before or 0) + value
        case "max" | "min" if before is not None:
            return max(before, value) if reducer == "max" else min(before, value)
        case "merge":
            return {**(before or {}), **value}
        case _:
            return value
