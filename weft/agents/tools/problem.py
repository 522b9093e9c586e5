"""Errors of tools in our words: a wrong value, a raised exception, an unknown name.

The one place that converts the exceptions of tools and of their types.
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable, Sequence

from pydantic import ValidationError

from weft.core.errors import ToolRaised, WeftError

_MOST_NAMES = 12


def suggestion(name: str, names: Iterable[str]) -> str:
    """A hint for somebody who wrote `name` where only `names` exist."""
    known = sorted(names)
    if not known:
        return "there are none"
    close = difflib.get_close_matches(name, known, n=1)
    more = ", ..." if len(known) > _MOST_NAMES else ""
    listed = f"there are: {', '.join(known[:_MOST_NAMES])}{more}"
    return f"did you mean {close[0]}? {listed}" if close else listed


_SHOWN = 5
_LONGEST = 2_000
_JSON_NAMES = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60


def problems(error: ValidationError, names: Iterable[str] = ()) -> str:
    """All that is wrong, each with its place: "limit should be a valid integer, got 'x' (string)".

    `names` are the parameters there are, where the value is a set of arguments.
    """
    found = error.errors(include_url=False, include_context=False)
    said = [_said(each["type"], each["loc"], each["msg"], each["input"], names) for each in found]
    more = f"; and {len(said) - _SHOWN} more" if len(said) > _SHOWN else ""
    return "; ".join(said[:_SHOWN]) + more


def _said(
    kind: str, place: Sequence[int | str], message: str, value: object, names: Iterable[str]
) -> str:
    where = _spelled(place)
    if kind == "missing":
        return f"{where} is missing"
    if kind == "extra_forbidden":
        return f"{where} is unknown" + (f" ({suggestion(where, names)})" if len(place) == 1 else "")
    colon = "" if message.startswith("Input ") else ":"
    return f"{where}{colon} {message.removeprefix('Input ')}, got {_shown(value)}"


def _spelled(place: Sequence[int | str]) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return "".join(steps).lstrip(".") or "the result"


def _shown(value: object) -> str:
    return f"{_short.repr(value)} ({_JSON_NAMES.get(type(value), type(value).__name__)})"


def as_tool_error(name: str, error: BaseException) -> WeftError:
    """What the code of tool `name` raised as a `WeftError`; one of ours stays as it is.

    A lost connection and a timeout are worth another try. For anything else a tool says so itself,
    with `raise ToolRaised("...", retryable=True)`.
    """
    if isinstance(error, WeftError):
        return error
    wrapped = ToolRaised(
        f"{name} raised {type(error).__name__}: {_message(error)}".removesuffix(": "),
        retryable=isinstance(error, (ConnectionError, TimeoutError)),
    )
    wrapped.__cause__ = error
    return wrapped


def _message(error: BaseException) -> str:
    try:
        return str(error)[:_LONGEST]
    except Exception as unreadable:  # noqa: BLE001 - a tool's own exception class may misbehave
        return f"(its message cannot be read: {type(unreadable).__name__})"
