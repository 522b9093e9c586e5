"""JSON Schemas of Python types, as a model reads them and as the checker of graphs trusts them.

Knows pydantic's types only.
"""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema


class PlainSchema(GenerateJsonSchema):
    """pydantic's schemas, without titles that only repeat names, and exact about results.

    A result is dumped by its declared type: all declared fields are there, and no others. pydantic
    leaves both open.
    """

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - theirs

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:
        if self.mode == "serialization" and field["type"] != "typed-dict-field":
            return not (field.get("serialization_exclude") or field.get("serialization_exclude_if"))
        return super().field_is_required(field, total)

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return self._closed(schema, super().model_schema(schema))

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return self._closed(schema, super().dataclass_schema(schema))

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        return self._closed(schema, super().typed_dict_schema(schema))

    def _closed(self, schema: Any, described: JsonSchemaValue) -> JsonSchemaValue:
        dumped_by_type = self.mode == "serialization" and "serialization" not in schema
        if dumped_by_type and "properties" in described:
            described.setdefault("additionalProperties", False)
        return described
