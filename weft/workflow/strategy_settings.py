"""Settings of strategies as people write them: names of functions and files become what they name.

Runs none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from weft.core.errors import ToolError
from weft.reasoning.strategies import STRATEGIES
from weft.workflow.beside import file_beside
from weft.workflow.imports import Function, build_error, function_in, function_of
from weft.workflow.unit import Unit


def settings_in(unit: Unit, strategy: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those that `unit` gives; functions and files lie in its folder.

    Raises: `BuildError`.
    """
    return _resolved(
        strategy,
        settings,
        lambda text: function_of(unit, text),
        lambda text: str(file_beside(unit, text)),
    )


def settings_here(strategy: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those that a person typed; paths start in the working directory.

    Raises: `BuildError`.
    """
    return _resolved(strategy, settings, lambda text: function_in(Path.cwd(), text), str)


def functions_in(strategy: str, settings: Mapping[str, Any]) -> list[str]:
    """The functions that settings name, as they are written."""
    entry = STRATEGIES.get(strategy)
    functions = () if entry is None else entry.functions
    return [
        value
        for name, value in settings.items()
        if name in functions and isinstance(value, str) and ":" in value
    ]


def _resolved(
    strategy: str,
    settings: Mapping[str, Any],
    function: Callable[[str], Function],
    file: Callable[[str], str],
) -> dict[str, Any]:
    entry = STRATEGIES.get(strategy)
    if entry is None:
        return dict(settings)
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if name in entry.functions and isinstance(value, str) and ":" in value:
            try:
                found[name] = function(value)
            except ToolError as error:
                raise build_error(error) from error
        else:
            found[name] = file(value) if name in entry.files and isinstance(value, str) else value
    return found
