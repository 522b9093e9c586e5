"""Settings of one strategy: checked names and types. Knows no strategy."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from weft.core.errors import BuildError


def read_settings(
    strategy: str, given: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """`defaults` with what is `given`. A value must be of the type of its default.

    A default of None takes anything; an int stands for a float.

    Raises: `BuildError` for an unknown name, which lists those there are, or a wrong type.
    """
    for name, value in given.items():
        if name not in defaults:
            raise BuildError(f"{strategy} has no setting {name!r}", hint=_choices(name, defaults))
        kind = type(defaults[name])
        if not _fits(value, kind):
            wrong = f"{strategy}: setting {name!r} is {type(value).__name__}, not {kind.__name__}"
            raise BuildError(wrong, hint=f"for example {defaults[name]!r}")
    return {**defaults, **given}


def _fits(value: object, kind: type) -> bool:
    if kind is type(None):
        return True
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _choices(name: str, defaults: Mapping[str, Any]) -> str:
    if not defaults:
        return "it takes none"
    close = get_close_matches(name, defaults, n=1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    return f"{meant}there are: {', '.join(defaults)}"
