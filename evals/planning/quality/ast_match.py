"""BFCL's rules for Python calls, without running anything: do calls match the allowed ones?

After the Berkeley Function Calling Leaderboard's AST check (gorilla, `bfcl_eval`, Apache-2.0). Its
edge cases are kept, also the surprising ones: they are tested by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

Call = tuple[str, Mapping[str, Any]]
"""A function's name and its arguments."""

Allowed = Mapping[str, Sequence[Any]]
"""For each parameter the values that count as right; "" among them: it may be left out."""

OPTIONAL: Final = ""
_TYPES: Final[Mapping[str, type]] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": str,
}
_IGNORED: Final = re.compile(r"[ ,./\-_*^]")


def parallel_error(
    calls: Sequence[Call], gold: Sequence[Mapping[str, Allowed]], functions: Sequence[Any]
) -> str:
    """What is wrong with `calls`, in a word; "" where each of `gold` has a call of its own.

    The number must be right. Gold calls are taken in order, and each gets the first call that
    fits and is still free (greedy, as published). `functions` are BFCL's descriptions.
    """
    if len(calls) != len(gold):
        return "wrong_count"
    described = {function["name"]: function["parameters"] for function in functions}
    free = list(calls)
    for expected in gold:
        name, allowed = next(iter(expected.items()))
        errors = [call_error(call, name, allowed, described[name]) for call in free]
        if "" not in errors:
            return next((error for error in errors if error != "wrong_function"), "wrong_function")
        del free[errors.index("")]
    return ""


def call_error(call: Call, name: str, allowed: Allowed, parameters: Mapping[str, Any]) -> str:
    """What is wrong with one call, in a word; "" where it is right."""
    called, arguments = call
    if called != name:
        return "wrong_function"
    if any(required not in arguments for required in parameters["required"]):
        return "missing_required"
    for key, value in arguments.items():
        if key not in parameters["properties"] or key not in allowed:
            return "unexpected_parameter"
        error = _value_error(value, allowed[key], parameters["properties"][key])
        if error:
            return error
    left_out = (key for key in allowed if key not in arguments)
    if any(OPTIONAL not in allowed[key] for key in left_out):
        return "missing_optional"
    return ""


def standard(text: str) -> str:
    """Text without case, blanks and `,./-_*^`, single quotes as double ones."""
    return _IGNORED.sub("", text).lower().replace("'", '"')


def _value_error(value: Any, allowed: Sequence[Any], described: Mapping[str, Any]) -> str:
    kind = described["type"]
    expected = _TYPES[kind]
    inner: type | None = _TYPES[described["items"]["type"]] if kind in {"array", "tuple"} else None
    if kind == "float" and type(value) is int:
        value = float(value)
    found: type = type(value)
    answers = next((type(answer) for answer in allowed if answer != OPTIONAL), None)
    if found is expected:
        if inner is not None and not _items_fit(value, allowed, inner):
            return "wrong_type_inside"
        is_variable = answers not in {None, expected}
    elif answers is not None and found is answers:
        is_variable = True
    else:
        return "wrong_type"
    if is_variable:
        return "" if value in allowed else "wrong_value"
    return "" if _is_allowed(value, allowed, inner) else "wrong_value"


def _items_fit(items: Sequence[Any], allowed: Sequence[Any], inner: type) -> bool:
    """Whether the items have the type `inner`, or that of the items of one allowed list."""
    lists = [answer for answer in allowed if isinstance(answer, list)]
    if len(lists) < len(allowed):
        return True  # "" is among the allowed: published, the items are then not looked at
    return any(all(_item_fits(item, answer, inner) for item in items) for answer in lists)


def _item_fits(item: Any, answer: Sequence[Any], inner: type) -> bool:
    other = next((type(each) for each in answer if each != OPTIONAL), None)
    return type(item) is inner or (other is not None and type(item) is other)


def _is_allowed(value: Any, allowed: Sequence[Any], inner: type | None) -> bool:
    if isinstance(value, dict):
        return any(_dict_fits(value, answer) for answer in allowed if answer != OPTIONAL)
    if isinstance(value, list) and inner is dict:
        return any(_dicts_fit(value, answer) for answer in allowed)
    return _plain(value) in [_plain(answer) for answer in allowed]


def _dict_fits(value: Mapping[str, Any], answer: Mapping[str, Sequence[Any]]) -> bool:
    known = all(
        key in answer and _plain(each) in [_plain(one) for one in answer[key]]
        for key, each in value.items()
    )
    return known and all(key in value or OPTIONAL in answer[key] for key in answer)


def _dicts_fit(value: Sequence[Any], answer: Sequence[Any]) -> bool:
    pairs = zip(value, answer, strict=False)
    return len(value) == len(answer) and all(_dict_fits(one, other) for one, other in pairs)


def _plain(value: Any) -> Any:
    """A text in its standard form, and so the texts directly inside a list."""
    if isinstance(value, str):
        return standard(value)
    if isinstance(value, list):
        return [standard(each) if isinstance(each, str) else each for each in value]
    return value


def gold_calls(gold: Sequence[Mapping[str, Allowed]], functions: Sequence[Any]) -> Iterator[Call]:
    """Calls that are right: the first value that is allowed for each parameter there is."""
    described = {function["name"]: function["parameters"]["properties"] for function in functions}
    for expected in gold:
        name, allowed = next(iter(expected.items()))
        known = {key: _first(values) for key, values in allowed.items() if key in described[name]}
        yield name, {key: value for key, value in known.items() if value != OPTIONAL}


def _first(values: Sequence[Any]) -> Any:
    value = next((each for each in values if each != OPTIONAL), OPTIONAL)
    if isinstance(value, dict):
        return {key: _first(each) for key, each in value.items() if _first(each) != OPTIONAL}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [_first([each]) for each in value]
    return value
