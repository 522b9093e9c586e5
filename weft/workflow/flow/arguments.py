"""What a call in Python is given, sorted: options, arguments, other tools. Runs nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from weft.core.errors import BuildError

Function = Callable[..., Any]


def split(
    values: Mapping[str, object], options: Collection[str]
) -> tuple[dict[str, Any], dict[str, object]]:
    """Options of the node, and arguments of what it calls."""
    chosen = {key: value for key, value in values.items() if key in options}
    return chosen, {key: value for key, value in values.items() if key not in options}


def by_name(function: str | Function, arguments: Sequence[object]) -> Mapping[str, object]:
    """Positional arguments under the names of their parameters."""
    if not arguments:
        return {}
    if isinstance(function, str):
        raise BuildError(f"give the arguments of {function} by name")
    try:
        return inspect.signature(function).bind_partial(*arguments).arguments
    except (TypeError, ValueError) as error:
        name = getattr(function, "__name__", repr(function))
        raise BuildError(f"{name} does not take these arguments: {error}") from error


def alternative(
    other: str | Function | Mapping[str, Any], name: Callable[[Function], str]
) -> str | dict[str, Any]:
    """A tool that may be called instead, as a document says it; `name` is how it declares one."""
    if isinstance(other, Mapping):
        said = dict(other)
        if callable(said.get("tool")):
            said["tool"] = name(said["tool"])
        return said
    return name(other) if callable(other) else other


def thinking(
    think: str | Mapping[str, object], name: Callable[[Function], str]
) -> str | dict[str, object]:
    """How a model is to think; `name` makes a reference of each function among the settings."""
    if isinstance(think, str):
        return think
    settings = think.get("settings")
    if not isinstance(settings, Mapping):
        return dict(think)
    named = {key: name(value) if callable(value) else value for key, value in settings.items()}
    return {**think, "settings": named}
