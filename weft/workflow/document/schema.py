"""The JSON Schema of a workflow file, for editors and checkers."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema

from weft.workflow.document.document import Document


class _Generator(GenerateJsonSchema):
    """Pydantic's generator without its titles, which only repeat the keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - its signature
        return False

    def generate(self, schema: CoreSchema, mode: Any = "validation") -> dict[str, Any]:
        made = super().generate(schema, mode)
        for definition in made.get("$defs", {}).values():
            definition.pop("title", None)
        return made


def json_schema() -> dict[str, Any]:
    """A JSON Schema (draft 2020-12) that takes what the loader takes, as far as structure goes."""
    made = Document.model_json_schema(by_alias=True, schema_generator=_Generator)
    return {"$schema": _Generator.schema_dialect, **made, "title": "weft workflow"}
