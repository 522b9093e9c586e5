"""What an operation may answer: which schema belongs to which status.

Knows what the document declares, not what came.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft.agents.foreign import vetted
from weft.agents.openapi.document import ApiDocument
from weft.agents.openapi.media import is_json
from weft.agents.openapi.schema import SchemaWriter
from weft.core.errors import BuildError
from weft.core.values import JsonSchema
from weft.validation import SchemaRefused

_TEXT: Final = {"type": "string"}
_NOTHING: Final = {"type": "null"}
_EMPTY: Final = frozenset({"204", "205"})


@dataclass(frozen=True, slots=True)
class Response:
    """One declared answer. `schema` is None where any JSON or text may come.

    `unchecked` says why a declared schema is not used, empty where it is.
    """

    schema: JsonSchema | None
    wants_json: bool = False
    unchecked: str = ""


@dataclass(frozen=True, slots=True)
class Responses:
    """Answers that are a success, by status as the document spells it: `200`, `2XX`, `default`."""

    declared: Mapping[str, Response]

    def of(self, status: int) -> Response:
        """What is declared for `status`."""
        for key in (str(status), f"{status // 100}XX"):
            if key in self.declared:
                return self.declared[key]
        if status // 100 == 2 and self._good:
            return Response(self.result())
        return self.declared.get("default", Response(None))

    def result(self) -> JsonSchema | None:
        """The schema of every successful answer, or None where one of them may be anything."""
        schemas = [each.schema for each in self._good or [self.of(200)]]
        known = [schema for schema in schemas if schema is not None]
        if len(known) != len(schemas):
            return None
        different = [each for index, each in enumerate(known) if each not in known[:index]]
        if len(different) == 1:
            return different[0]
        definitions = [each["$defs"] for each in different if "$defs" in each]
        if len(definitions) > 1:  # of equal names, perhaps, and different meaning
            return None
        bare = [{key: each[key] for key in each if key != "$defs"} for each in different]
        return {"anyOf": bare, **({"$defs": definitions[0]} if definitions else {})}

    @property
    def _good(self) -> list[Response]:
        return [each for key, each in self.declared.items() if key.startswith("2")]


def responses_of(document: ApiDocument, declared: Any) -> Responses:
    """The answers of an operation. Raises: `BuildError`."""
    if not isinstance(declared, Mapping):
        raise BuildError("`responses` must be an object")
    return Responses(
        {
            key if key == "default" else key.upper(): _response(document, key, part)
            for key, part in declared.items()
            if key == "default" or key.startswith("2")
        }
    )


def _response(document: ApiDocument, status: str, part: Any) -> Response:
    content = document.resolved(part, "a response").get("content")
    if not isinstance(content, Mapping) or not content:
        # Many documents leave out what their servers answer, but these statuses have no body.
        return Response(_NOTHING if status in _EMPTY else None)
    only = all(is_json(media) for media in content)
    for media, about in content.items():
        if is_json(media):
            return _checked(document, document.resolved(about, "a media type").get("schema"), only)
    texts = all(media.startswith("text/") for media in content)
    return Response(_TEXT if texts else None)


def _checked(document: ApiDocument, schema: Any, only: bool) -> Response:
    """A response with its schema; one that is too large to check with is told, not used."""
    writer = SchemaWriter(document, "response")
    written = writer.written(schema)
    definitions = writer.definitions()
    try:
        if not isinstance(written, Mapping):
            return Response(None, only)
        whole = {**written, "$defs": definitions} if definitions else written
        return Response(vetted(whole), only)
    except SchemaRefused as error:
        return Response(None, only, str(error))
