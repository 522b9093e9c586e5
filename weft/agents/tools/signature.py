"""Reads a function as a tool, from its signature and docstring."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Optional, Protocol

import docstring_parser
from pydantic.fields import FieldInfo

from weft.agents.tools.context import ToolContext
from weft.agents.tools.schema import FunctionParameter, FunctionParameters, FunctionResult
from weft.core.errors import BuildError
from weft.core.values import JsonSchema

KEY: Final = "idempotency_key"
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class ToolParameters(Protocol):
    """The parameters of a tool: their schema, and conversion of arguments to and from JSON."""

    @property
    def schema(self) -> JsonSchema:
        """The JSON Schema of all parameters."""

    def encode(self, tool: str, arguments: Mapping[str, Any]) -> bytes:
        """`arguments` as JSON text. Raises: `ToolArgumentError`."""

    def decode(self, tool: str, arguments: bytes) -> dict[str, Any]:
        """The arguments of the function, from JSON text. Raises: `ToolArgumentError`."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A parsed function. `context` is the name of the parameter for a `ToolContext`, `key` that for
    the idempotency key, if any."""

    description: str
    parameters: ToolParameters
    result: FunctionResult
    context: str | None
    key: str | None = None


def signature_of(function: Callable[..., Any], *, keyed: bool = False) -> Signature:
    """The signature of `function`. `keyed`: it may have a parameter for its idempotency key.

    Raises: `BuildError`, with file and line, when a model could not call it by JSON.
    """
    try:
        return _signature_of(function, keyed)
    except BuildError as error:
        where = f"{getattr(function, '__name__', function)!s}{_place(function)}"
        raise BuildError(f"tool {where}: {error.message}", hint=error.hint) from error.__cause__


def _signature_of(function: Callable[..., Any], keyed: bool) -> Signature:
    _check_kind(function)
    hints = _hints(function)
    docstring = _Docstring(inspect.getdoc(function) or "")
    context: str | None = None
    key: str | None = None
    declared: list[FunctionParameter] = []
    for parameter in inspect.signature(function).parameters.values():
        _check_parameter(parameter, hints)
        hint = hints[parameter.name]
        if _is_context(hint):
            context = parameter.name
        elif keyed and parameter.name == KEY and hint in (str, str | None):
            key = parameter.name
        else:
            about = docstring.parameters.get(parameter.name)
            hint = _or_none(hint) if parameter.default is None else hint
            declared.append(FunctionParameter(parameter.name, hint, parameter.default, about))
    result = FunctionResult(hints.get("return", inspect.Signature.empty), docstring.result)
    return Signature(docstring.description, FunctionParameters(declared), result, context, key)


def _check_kind(function: Callable[..., Any]) -> None:
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise BuildError(
            f"{type(function).__name__} is not a function",
            hint="wrap it in a def and decorate that",
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BuildError("a tool cannot yield", hint="return a list")


def _hints(function: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise BuildError(
            f"its annotations cannot be resolved: {error}",
            hint="import and define types at the top of the module, not under TYPE_CHECKING",
        ) from error


def _check_parameter(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> None:
    if parameter.kind not in _NAMED:
        raise BuildError(
            f"{parameter} is not a parameter that JSON can name",
            hint="give every parameter a name of its own: no *args, **kwargs or positional-only",
        )
    if parameter.name not in hints:
        raise BuildError(
            f"parameter {parameter.name!r} has no annotation",
            hint=f"write {parameter.name}: str, or whatever it is",
        )
    if isinstance(parameter.default, FieldInfo):
        raise BuildError(
            f"the default of {parameter.name!r} is a Field",
            hint=f"write {parameter.name}: Annotated[..., Field(...)] = default",
        )


def _or_none(hint: Any) -> Any:
    """The type of a parameter whose default is None, which allows None."""
    return hint if hint is Any or hint is None else Optional[hint]  # noqa: UP045 - of any type


def _is_context(hint: Any) -> bool:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return ToolContext in typing.get_args(hint)
    return hint is ToolContext


def _place(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f" ({Path(code.co_filename).name}:{code.co_firstlineno})" if code else ""


class _Docstring:
    """A docstring of any common style (Google, NumPy, reST), parsed."""

    def __init__(self, text: str) -> None:
        self.description = text
        self.parameters: dict[str, str] = {}
        self.result: str | None = None
        try:
            parsed = docstring_parser.parse(text)
        except docstring_parser.ParseError:
            return
        self.description = (parsed.description or "").strip()
        for each in parsed.params:
            if each.description:
                self.parameters[each.arg_name] = each.description
        self.result = parsed.returns.description if parsed.returns else None
