"""Declared responses of an operation: schemas and media types by status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft.agents.openapi.document import ApiDocument, SchemaWriter
from weft.agents.untrusted import vet_schema
from weft.core.errors import BuildError
from weft.core.values import JsonSchema
from weft.validation import SchemaRefused


def kind_of(media: str) -> str:
    """The media type without parameters, in lower case: `application/json`."""
    return media.partition(";")[0].strip().lower()


def is_json(media: str) -> bool:
    """Whether `media` is JSON, such as `application/problem+json; charset=utf-8`."""
    kind = kind_of(media)
    return kind == "application/json" or (
        kind.startswith("application/") and kind.endswith("+json")
    )


_TEXT: Final = {"type": "string"}
_NOTHING: Final = {"type": "null"}
_EMPTY: Final = frozenset({"204", "205"})


@dataclass(frozen=True, slots=True)
class ResponseSchema:
    """One declared response. `schema` is None where any JSON or text is allowed.

    `unchecked`: the reason why a declared schema is not used, or empty.
    """

    schema: JsonSchema | None
    wants_json: bool = False
    unchecked: str = ""


@dataclass(frozen=True, slots=True)
class ResponseSchemas:
    """Successful responses, by status as in the document: `200`, `2XX`, `default`."""

    declared: Mapping[str, ResponseSchema]

    def of(self, status: int) -> ResponseSchema:
        """The declared response for `status`."""
        for key in (str(status), f"{status // 100}XX"):
            if key in self.declared:
                return self.declared[key]
        if status // 100 == 2 and self._good:
            return ResponseSchema(self.result())
        return self.declared.get("default", ResponseSchema(None))

    def result(self) -> JsonSchema | None:
        """The schema of every successful response, or None where one of them may be anything."""
        schemas = [each.schema for each in self._good or [self.of(200)]]
        known = [schema for schema in schemas if schema is not None]
        if len(known) != len(schemas):
            return None
        different = [each for index, each in enumerate(known) if each not in known[:index]]
        if len(different) == 1:
            return different[0]
        definitions = [each["$defs"] for each in different if "$defs" in each]
        if len(definitions) > 1:  # equal names may have different meanings
            return None
        bare = [{key: each[key] for key in each if key != "$defs"} for each in different]
        return {"anyOf": bare, **({"$defs": definitions[0]} if definitions else {})}

    @property
    def _good(self) -> list[ResponseSchema]:
        return [each for key, each in self.declared.items() if key.startswith("2")]


def responses_of(document: ApiDocument, declared: Any) -> ResponseSchemas:
    """The declared responses of an operation. Raises: `BuildError`."""
    if not isinstance(declared, Mapping):
        raise BuildError("`responses` must be an object")
    return ResponseSchemas(
        {
            key if key == "default" else key.upper(): _response(document, key, part)
            for key, part in declared.items()
            if key == "default" or key.startswith("2")
        }
    )


def _response(document: ApiDocument, status: str, part: Any) -> ResponseSchema:
    content = document.resolved(part, "a response").get("content")
    if not isinstance(content, Mapping) or not content:
        # Many documents omit the content of responses, but these statuses have none.
        return ResponseSchema(_NOTHING if status in _EMPTY else None)
    only = all(is_json(media) for media in content)
    for media, about in content.items():
        if is_json(media):
            return _checked(document, document.resolved(about, "a media type").get("schema"), only)
    texts = all(media.startswith("text/") for media in content)
    return ResponseSchema(_TEXT if texts else None)


def _checked(document: ApiDocument, schema: Any, only: bool) -> ResponseSchema:
    """A response with its schema, or with the reason why the schema cannot be used."""
    writer = SchemaWriter(document, "response")
    written = writer.written(schema)
    definitions = writer.definitions()
    try:
        if not isinstance(written, Mapping):
            return ResponseSchema(None, only)
        whole = {**written, "$defs": definitions} if definitions else written
        return ResponseSchema(vet_schema(whole), only)
    except SchemaRefused as error:
        return ResponseSchema(None, only, str(error))
