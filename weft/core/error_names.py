"""The errors that `retry_on` declares, as class names and HTTP statuses."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import Final

from weft.core import errors
from weft.core.foreign import ErrorCause, cause_of, class_name, class_names, matches
from weft.core.suggestion import closest

ErrorRef = type[Exception] | str | int
"""A class of exceptions, its name (`module.Class`, or bare if built in or weft's), or a status."""
_BARE: Final = frozenset(
    name
    for module in (builtins, errors)
    for name, value in vars(module).items()
    if isinstance(value, type) and issubclass(value, Exception)
)
_STATUSES: Final = range(400, 600)


def error_names(given: ErrorRef | Iterable[ErrorRef]) -> tuple[str | int, ...]:
    """`given` as names and statuses. Raises: `ValueError` for what names no error."""
    many = [given] if isinstance(given, type | str | int) else list(given)
    return tuple(_checked(each) for each in many)


def _checked(given: ErrorRef) -> str | int:
    if isinstance(given, type):
        kind: type = given
        if not issubclass(kind, Exception):
            why = f"{kind.__qualname__} is no class of exceptions"
            raise ValueError(why)  # noqa: TRY004 - one error for all
        own = issubclass(given, errors.WeftError) and given.__module__.startswith("weft.")
        return given.__qualname__ if own else class_name(given)
    if isinstance(given, int) and not isinstance(given, bool):
        if given not in _STATUSES:
            raise ValueError(f"{given} is no HTTP status of an error: those are 400 to 599")
        return given
    if not isinstance(given, str) or not all(part.isidentifier() for part in given.split(".")):
        raise ValueError(f"{given!r} is no class of exceptions and no HTTP status")
    if "." not in given and given not in _BARE:
        near = closest(given, sorted(_BARE))
        hint = f"did you mean {near}?" if near else "write module.Class"
        raise ValueError(f"no built-in exception is called {given}: {hint}")
    return given


def is_any_of(error: errors.WeftError, names: tuple[str | int, ...]) -> bool:
    """Whether `names` has a class of `error` or of the exception behind it, or its HTTP status."""
    own = matches(ErrorCause(class_names(type(error))), names)
    return own or matches(_cause(error), names)


def status_of(error: BaseException) -> int | None:
    """The HTTP status that `error`, or the exception behind it, stands for."""
    if not isinstance(error, errors.WeftError):
        return cause_of(error).status
    return _cause(error).status


def _cause(error: errors.WeftError) -> ErrorCause:
    if error.cause is not None:
        return error.cause
    behind = error.__cause__
    return ErrorCause() if behind is None else cause_of(behind)
