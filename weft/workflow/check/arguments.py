"""That a call gets the arguments it takes: names, and types where they can be proved wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from weft.core.errors import TypeMismatch, UnknownReference
from weft.core.schema import at, mismatch
from weft.core.values import JsonSchema, ToolSpec
from weft.workflow.check.infer import Look, infer
from weft.workflow.document import Document
from weft.workflow.document.defects import closest
from weft.workflow.expressions import value_template
from weft.workflow.source import Path
from weft.workflow.unit import Unit
from weft.workflow.values import violation


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a callee takes. `what` names it in messages; `closed`: it takes nothing else."""

    what: str
    schemas: Mapping[str, JsonSchema | None]
    required: tuple[str, ...]
    closed: bool

    @classmethod
    def of_tool(cls, spec: ToolSpec) -> Parameters:
        """The parameters of a tool."""
        declared = spec.parameters
        names = declared.get("properties", {})
        return cls(
            f"the tool `{spec.name}`",
            {name: at(declared, [name]) for name in names},
            tuple(declared.get("required", ())),
            declared.get("additionalProperties") is False,
        )

    @classmethod
    def of_workflow(cls, document: Document) -> Parameters:
        """The inputs of a workflow."""
        inputs = document.inputs
        required = tuple(name for name, declared in inputs.items() if declared.required)
        schemas = {name: declared.root for name, declared in inputs.items()}
        return cls(f"the workflow `{document.name}`", schemas, required, True)


def check_arguments(
    unit: Unit, parameters: Parameters, given: Mapping[str, Any], node: Path, look: Look
) -> None:
    """Check the arguments that stand under `with` of `node`.

    Raises: `UnknownReference` or `TypeMismatch` through `unit.fail`.
    """
    for name, value in given.items():
        path = (*node, "with", name)
        if name not in parameters.schemas:
            if parameters.closed:
                _unknown(unit, parameters.what, name, list(parameters.schemas), path)
            continue
        parsed = value_template(value)
        target = parameters.schemas[name]
        why = mismatch(infer(parsed, look), target)
        if why is None and target is not None and not parsed.names and _is_plain(parsed.parts):
            why = violation(value, target)
        if why is not None:
            message = f"`{name}` of {parameters.what} cannot take this: {why}"
            kind = target.get("type") if target is not None else None
            hint = f"it takes {kind}" if isinstance(kind, str) else "see what it takes"
            unit.fail(TypeMismatch(message, hint=hint), path)
    for name in parameters.required:
        if name not in given:
            _missing(unit, parameters.what, name, list(given), node)


def check_call(
    unit: Unit,
    function: Callable[..., Any] | None,
    given: Mapping[str, Any],
    node: Path,
    *,
    first: int = 0,
) -> None:
    """Check that a plain function takes `first` arguments in order and `given` by name.

    What cannot be inspected passes. Raises: `UnknownReference` or `TypeMismatch`.
    """
    try:
        parameters = inspect.signature(function).parameters if function is not None else None
    except (TypeError, ValueError):
        parameters = None
    if parameters is None:
        return
    what = f"the function `{getattr(function, '__name__', 'function')}`"
    by_order = [p.name for p in parameters.values() if p.kind in _BY_ORDER][:first]
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    by_name = [p.name for p in parameters.values() if p.kind in _BY_NAME and p.name not in by_order]
    for name in given:
        if name not in by_name and not takes_any:
            _unknown(unit, what, name, by_name, (*node, "with", name))
    for name in by_name:
        if parameters[name].default is inspect.Parameter.empty and name not in given:
            _missing(unit, what, name, list(given), node)


_BY_ORDER = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _is_plain(parts: Any) -> bool:
    return all(template.kind == "literal" for _, template in parts)


def _unknown(unit: Unit, what: str, name: str, choices: list[str], path: Path) -> None:
    hint = closest(name, choices) or "it takes nothing"
    unit.fail(UnknownReference(f"{what} has no `{name}`", hint=hint), path, at_key=True)


def _missing(unit: Unit, what: str, name: str, given: list[str], node: Path) -> None:
    hint = f"add `{name}` under `with`" + (f"; given: {', '.join(given)}" if given else "")
    unit.fail(TypeMismatch(f"{what} needs `{name}`", hint=hint), (*node, "with"), at_key=True)
