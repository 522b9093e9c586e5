"""Error messages of tools: wrong values, raised exceptions, unknown names.

The one place that converts the exceptions of tools and of their types.
"""

from __future__ import annotations

import asyncio
import reprlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from weft.core.errors import ToolLimitError, ToolRaised, WeftError
from weft.core.foreign import cause_of, is_transient
from weft.core.suggestion import suggestion
from weft.core.values import JsonSchema

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
    """All errors, each with its place: "limit should be a valid integer, got 'x' (string)".

    `names` are the known parameters, where the value is a set of arguments.
    """
    found = error.errors(include_url=False, include_context=False)
    descriptions = [
        _describe(each["type"], each["loc"], each["msg"], each["input"], names) for each in found
    ]
    more = f"; and {len(descriptions) - _SHOWN} more" if len(descriptions) > _SHOWN else ""
    return "; ".join(descriptions[:_SHOWN]) + more


def _describe(
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


def parameter_hint(schema: JsonSchema) -> str:
    """The parameters in `schema`, in order: "it takes: a, b?"."""
    needed = schema.get("required", ())
    names = [name if name in needed else f"{name}?" for name in schema.get("properties", ())]
    return f"it takes: {', '.join(names) or 'nothing'}"


def plain_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A copy as plain data. Raises: `ValueError` for what JSON cannot hold."""
    plain: dict[str, Any] = from_json(
        to_json(dict(arguments), inf_nan_mode="constants"), allow_inf_nan=False
    )
    return plain


def check_size(tool: str, size: int, max_bytes: int, hint: str) -> None:
    """Raises: `ToolLimitError` for a result of more than `max_bytes` of JSON."""
    if size > max_bytes:
        message = f"{tool} returned {size:,} bytes, at most {max_bytes:,} are allowed"
        raise ToolLimitError(message, hint=hint)


@asynccontextmanager
async def time_limit(tool: str, limit_s: float, *, retryable: bool = True) -> AsyncIterator[None]:
    """Cancels what runs inside after `limit_s`. Raises: `ToolLimitError` then."""
    try:
        async with asyncio.timeout(limit_s) as limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise late_error(tool, limit_s, retryable=retryable) from error


def late_error(tool: str, limit_s: float, *, retryable: bool = True) -> ToolLimitError:
    """The error of a call that exceeded its time limit."""
    return ToolLimitError(f"{tool} took longer than its {limit_s:g} s", retryable=retryable)


def as_tool_error(name: str, error: BaseException) -> WeftError:
    """An exception of the tool `name` as a `WeftError`; a `WeftError` is unchanged.

    A lost connection, a timeout and a busy HTTP server are retryable (`is_transient`). For anything
    else a tool declares it with `raise ToolRaised("...", retryable=True)` or `retry_on`.
    """
    if isinstance(error, WeftError):
        return error
    wrapped = ToolRaised(
        f"{name} raised {type(error).__name__}: {_message(error)}".removesuffix(": "),
        retryable=is_transient(error),
    )
    wrapped.__cause__ = error
    wrapped.cause = cause_of(error)
    wrapped.retry_after_s = wrapped.cause.retry_after_s
    return wrapped


def _message(error: BaseException) -> str:
    try:
        return str(error)[:_LONGEST]
    except Exception as unreadable:  # noqa: BLE001 - a tool's own exception class may misbehave
        return f"(its message cannot be read: {type(unreadable).__name__})"
