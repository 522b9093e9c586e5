"""Tools and plain functions of a workflow, imported on first use.

Importing a file runs it, so it is as trusted as the workflow next to it. A dotted module name gives
access to `@weft.tool` functions only: a workflow file alone can never name `os:system`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from weft.agents.tools import Isolation, Tool, resolve
from weft.agents.tools.approval import ApprovalRule
from weft.agents.tools.module import is_file, load_file
from weft.core.errors import BuildError, ToolNotFound, WeftError
from weft.core.suggestion import suggestion
from weft.workflow.document.expressions import value_template
from weft.workflow.document.spec.declarations import IsolationSpec, ToolUse
from weft.workflow.document.unit import Unit, file_beside

Function = Callable[..., Any]


def tool_of(unit: Unit, text: str) -> Tool[..., Any]:
    """The tool that `text` names in `unit`: a declared name, or an import path.

    Raises: `ToolNotFound` or `BuildError`.
    """
    declared = unit.document.tools.get(text)
    reference = text if declared is None else declared.use or text
    function = unit.functions.get(reference)
    if function is None:
        function = resolve(_from_root(unit, reference), unit.root)
    made = unit.memo.tools.get(text)
    if made is None or made[0] is not function:
        made = unit.memo.tools[text] = function, _declared(function, declared)
    tool: Tool[..., Any] = made[1]
    return tool


def _declared(function: Function, declared: ToolUse | None) -> Tool[..., Any]:
    """A tool, or a function as a tool, with the settings of its declaration."""
    tool = function if isinstance(function, Tool) else Tool(function)
    if declared is None:
        return tool
    given: dict[str, Any] = {
        "isolation": None if declared.isolate is None else _isolation(declared.isolate),
        "effect": declared.effects.get(""),
        "approve": rule_of(declared.approval()),
        "needs": declared.needs,
        "makes": declared.makes,
        "fill": declared.fill,
    }
    given = {name: value for name, value in given.items() if value is not None}
    return tool.declared(**given) if given else tool


def rule_of(written: bool | str | None) -> ApprovalRule | None:
    """The rule of a declaration: a bool, or a template over the arguments."""
    if not isinstance(written, str):
        return written
    parsed = value_template(written)
    return lambda arguments: bool(parsed.render(dict(arguments)))


def function_of(unit: Unit, reference: str) -> Function:
    """The plain function at an import path, or the one that Python code gave under that name.

    Raises: `ToolNotFound` or `BuildError`.
    """
    given = unit.functions.get(reference)
    if given is not None:
        return given.function if isinstance(given, Tool) else given
    source, _, name = reference.rpartition(":")
    if not is_file(source):
        return resolve(reference, unit.root).function
    path, _, _ = _from_root(unit, reference).rpartition(":")
    return _own_function(load_file((unit.root / path).resolve()), source, name)


def function_in(folder: Path, reference: str) -> Function:
    """The plain function `./file.py:name` of a command line; paths are relative to `folder`.

    Raises: `ToolNotFound` or `BuildError`.
    """
    source, _, name = reference.rpartition(":")
    if not is_file(source):
        return resolve(reference, folder).function
    return _own_function(load_file((folder / source).resolve()), source, name)


def _own_function(module: ModuleType, source: str, name: str) -> Function:
    """A function that the file itself defines, not one that it imports."""
    value = getattr(module, name, None)
    if isinstance(value, Tool):
        return value.function
    if inspect.isfunction(value) and value.__module__ == module.__name__:
        return value
    own = [
        key
        for key, value in vars(module).items()
        if isinstance(value, Tool)
        or (inspect.isfunction(value) and value.__module__ == module.__name__)
    ]
    raise ToolNotFound(f"{source} defines no function {name!r}", hint=suggestion(name, own))


def _from_root(unit: Unit, reference: str) -> str:
    """`reference` with a file's path relative to the root folder, which must contain it."""
    source, colon, name = reference.rpartition(":")
    if not colon or not is_file(source):
        return reference
    hint = "keep Python files beside the workflow, or install them and write package.module:name"
    return f"./{file_beside(unit, source, hint).relative_to(unit.root)}:{name}"


def _isolation(limits: IsolationSpec) -> Isolation:
    given: Mapping[str, Any] = {
        "timeout_s": limits.timeout,
        "memory_bytes": limits.memory,
        "output_bytes": limits.output,
    }
    return Isolation(**{key: value for key, value in given.items() if value is not None})


def build_error(error: WeftError) -> BuildError:
    """An import error as a `BuildError`, with its message and hint."""
    if isinstance(error, BuildError):
        return error
    hint = error.hint or "paths start at the folder of the workflow file"
    built = BuildError(error.message, hint=hint)
    built.__cause__ = error
    return built
