"""The schemas that a request brings along: of its answer, and of the tools that it offers."""

from __future__ import annotations

import json
from collections.abc import Iterator

from weft.core.ports import ModelRequest
from weft.core.turns import in_turn
from weft.core.values import JsonSchema
from weft.serving.gateway.problem import bad_request
from weft.validation import SchemaRefused, compile_schema

_MAX_CHARS = 1_000_000
"""Of all schemas of one request."""


async def check_schemas(request: ModelRequest) -> None:
    """Raises: `Refused` with 400 for a schema that cannot be used, or too many."""
    schemas = list(_schemas(request))
    if schemas:  # in a thread: there may be hundreds
        await in_turn(_check, schemas)


def _schemas(request: ModelRequest) -> Iterator[tuple[str, JsonSchema]]:
    if request.schema is not None:
        yield "response_format", request.schema
    for index, tool in enumerate(request.tools):
        yield f"tools[{index}].function.parameters", tool.parameters


def _check(schemas: list[tuple[str, JsonSchema]]) -> None:
    chars = 0
    for field, schema in schemas:
        chars += len(json.dumps(schema))
        if chars > _MAX_CHARS:
            raise bad_request(f"schemas of more than {_MAX_CHARS:,} characters", field)
        try:
            compile_schema(schema)
        except SchemaRefused as error:
            raise bad_request(f"`{field}`: {error}", field, "invalid_value") from None
