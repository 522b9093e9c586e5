"""A function as a tool by a schema that somebody else wrote: `tool_from_schema`.

The schema, not the function's annotations, says what a model may give.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import to_json

from weft.agents.tools.declaration import declaration_of
from weft.agents.tools.function import Tool
from weft.agents.tools.result import Result
from weft.agents.tools.signature import Signature
from weft.core.errors import BuildError, ToolArgumentError
from weft.core.values import Effect, JsonSchema
from weft.validation import TooMuchToCheck, misfit

_ANY_NAME = inspect.Parameter.VAR_KEYWORD
_POSITIONAL = inspect.Parameter.POSITIONAL_ONLY


class SchemaParameters:
    """Parameters as a JSON Schema has them; values reach the function as plain data."""

    def __init__(self, schema: JsonSchema) -> None:
        self.schema = schema

    def encode(self, tool: str, arguments: Mapping[str, Any]) -> bytes:
        """`arguments` as JSON text. Raises: `ToolArgumentError`."""
        try:
            return to_json(dict(arguments), inf_nan_mode="constants")
        except ValueError as error:
            raise ToolArgumentError(f"{tool}: {error}", hint="tools take plain data") from error

    def decode(self, tool: str, arguments: bytes) -> dict[str, Any]:
        """The values to call the function with, from JSON text. Raises: `ToolArgumentError`."""
        values: dict[str, Any] = json.loads(arguments)
        try:
            wrong = misfit(values, self.schema)
        except TooMuchToCheck as error:
            wrong = str(error)
        if wrong is not None:
            names = ", ".join(self.schema.get("properties", ()))
            raise ToolArgumentError(f"{tool}: {wrong}", hint=f"it takes: {names or 'nothing'}")
        return values


def tool_from_schema(
    function: Callable[..., Any],
    schema: Mapping[str, Any],
    *,
    name: str | None = None,
    pure: bool = False,
    timeout_s: float | None = None,
    resource: str | None = None,
    version: str | None = None,
    effect: Effect = "unknown",
) -> Tool[..., Any]:
    """Make `function` a tool that models call as `schema` declares it.

        tool = weft.tool_from_schema(search, {"name": "web.search", "parameters": {...}})

    Args:
        function: sync or async; it gets the arguments by name, as plain data
        schema: one declaration as OpenAI, Anthropic, Gemini, MCP or the Berkeley leaderboard write
            it; types such as "dict", "float", "tuple" and "STRING" are JSON Schema's own then
        name: the tool's name; by default the declared one as an identifier: `web.search` is
            `web_search`

    The rest is as for `tool`. Raises: `BuildError`, which names the place, for what is no
    declaration, and for a parameter that the function does not take.
    """
    declared = declaration_of(schema, name)
    _check_takes(function, declared.name, declared.parameters)
    signature = Signature(
        declared.description,
        SchemaParameters(declared.parameters),
        Result(inspect.Signature.empty, None),
        None,
    )
    return Tool(
        function,
        name=declared.name,
        pure=pure,
        timeout_s=timeout_s,
        resource=resource,
        version=version,
        effect=effect,
        signature=signature,
    )


def _check_takes(function: Callable[..., Any], name: str, schema: JsonSchema) -> None:
    """Raises: `BuildError` where a call as declared could not be made."""
    taken = inspect.signature(function).parameters.values()
    named = {one.name: one for one in taken if one.kind not in (_ANY_NAME, _POSITIONAL)}
    declared = schema.get("properties", {})
    if not any(one.kind == _ANY_NAME for one in taken):
        for parameter in declared:
            if parameter not in named:
                raise BuildError(
                    f"tool {name}: the function takes no parameter {parameter!r}",
                    hint="give it the declared names, or **arguments",
                )
    for parameter, one in named.items():
        needed = (
            one.default is inspect.Parameter.empty and one.kind != inspect.Parameter.VAR_POSITIONAL
        )
        if needed and parameter not in schema.get("required", ()):
            raise BuildError(
                f"tool {name}: the function needs {parameter!r}, which the schema does not require",
                hint="give it a default, or list it under `required`",
            )
