"""References to the values they mean, with their types; conditions to yes or no. Runs nothing."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from weft.core.errors import TypeMismatch, UnknownReference
from weft.planner.plan import Condition, Here, Ref, Value
from weft.planner.text.writer import write_ref

Results = Mapping[int | Here, Any]
"""What references mean: the results of steps by number, and the item and index of a map."""

_TESTS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def follow(ref: Ref, results: Results) -> Any:
    """The value that `ref` means.

    Raises: `UnknownReference` when there is nothing at its path, saying what there is.
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
    """What `value` is, in a few words."""
    if isinstance(value, Mapping):
        there = ", ".join(map(str, list(value)[:20]))
        return f"an object with {there}" if there else "an empty object"
    if _is_list(value):
        return f"a list of {len(value)}"
    if value is None or isinstance(value, bool):
        return str(json.dumps(value))
    return "a text" if isinstance(value, str) else "a number"


def resolve(value: Value, results: Results) -> Any:
    """`value` as plain JSON data, every reference replaced by what it means.

    Raises: `UnknownReference`.
    """
    if isinstance(value, Ref):
        return follow(value, results)
    if isinstance(value, Mapping):
        return {name: resolve(item, results) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [resolve(item, results) for item in value]
    return value


def holds(condition: Condition, results: Results) -> bool:
    """Whether the condition is true; by itself, null, false, 0 and what is empty count as no.

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
