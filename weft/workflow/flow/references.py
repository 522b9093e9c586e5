"""How a document names a Python function: by an import path, if a file could say it too."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from weft.agents.tools import Tool
from weft.workflow.unit import ONLY_PYTHON


class References:
    """The references of one program, each found once; adds to `functions` what they stand for."""

    def __init__(self, folder: Path, functions: dict[str, Callable[..., Any]]) -> None:
        self._folder = folder
        self._functions = functions
        self._known: dict[tuple[int, bool], tuple[Callable[..., Any], str]] = {}  # keeps them alive

    def of(self, function: Callable[..., Any], here_only: bool = False) -> str:
        """A reference to `function`; with `here_only` one that works in this process only."""
        key = id(function), here_only
        if key not in self._known:
            folder = None if here_only else self._folder
            self._known[key] = function, reference_to(function, folder, self._functions)
        _, reference = self._known[key]
        self._functions[reference] = function
        return reference


def reference_to(
    function: Callable[..., Any], folder: Path | None, known: Mapping[str, Callable[..., Any]]
) -> str:
    """A reference to `function`, unlike those in `known` unless it is there already.

    `./file.py:name` for what lies in `folder` or below; `module:name` for tools elsewhere; else,
    and without a folder, a reference that works in this process only.
    """
    plain = function.function if isinstance(function, Tool) else function
    path = _import_path(function, plain, folder) if folder is not None else None
    if path is not None:
        return path
    name = getattr(plain, "__name__", type(plain).__name__).strip("<>") or "function"
    reference, number = f"{ONLY_PYTHON}{name}", 1
    while known.get(reference, function) is not function:
        number += 1
        reference = f"{ONLY_PYTHON}{name}_{number}"
    return reference


def _import_path(given: Callable[..., Any], plain: Callable[..., Any], folder: Path) -> str | None:
    name = getattr(plain, "__qualname__", "")
    module = sys.modules.get(getattr(plain, "__module__", None) or "")
    found = getattr(module, name, None)
    if module is None or not name.isidentifier() or not (found is given or found is plain):
        return None
    file = inspect.getsourcefile(plain) if inspect.isfunction(plain) else None
    if file is not None and Path(file).resolve().is_relative_to(folder):
        return f"./{Path(file).resolve().relative_to(folder).as_posix()}:{name}"
    importable = module.__name__ != "__main__" and isinstance(given, Tool)
    return f"{module.__name__}:{name}" if importable else None
