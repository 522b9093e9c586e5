"""All typed edits: read from JSON, and the JSON Schema to which a model that proposes is held."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter, ValidationError

from weft.core.suggestion import suggestion
from weft.optimisation.edits.choose import Choose
from weft.optimisation.edits.edit import Edit
from weft.optimisation.edits.error import EditError
from weft.optimisation.edits.insertions import InsertRevise, InsertVerifier, WrapCascade, WrapVote
from weft.optimisation.edits.messages import SetMessageFormat
from weft.optimisation.edits.settings import (
    SetDecoder,
    SetDemonstrations,
    SetModel,
    SetPrompt,
    SetSamples,
    SetSchemaOrder,
    SetWidth,
)
from weft.optimisation.edits.structure import Drop, Fuse, Hoist, Parallelise, Split

EDITS: Final[Mapping[str, type[Edit]]] = {
    kind.model_fields["edit"].default: kind
    for kind in (
        *(SetPrompt, SetDemonstrations, SetModel, SetDecoder, SetSamples, SetWidth, SetSchemaOrder),
        *(SetMessageFormat, InsertVerifier, InsertRevise, WrapVote, WrapCascade),
        *(Split, Fuse, Parallelise, Drop, Hoist, Choose),
    )
}
"""The kinds of edits by name."""
UNCHANGED: Final[tuple[type[Edit], ...]] = (Fuse, Hoist, Parallelise)
"""Edits that claim that no value changes."""
_MOST: Final = 1_000
_AnyEdit = Annotated[
    SetPrompt
    | SetDemonstrations
    | SetModel
    | SetDecoder
    | SetSamples
    | SetWidth
    | SetSchemaOrder
    | SetMessageFormat
    | InsertVerifier
    | InsertRevise
    | WrapVote
    | WrapCascade
    | Split
    | Fuse
    | Parallelise
    | Drop
    | Hoist
    | Choose,
    Field(discriminator="edit"),
]
_LIST: Final[TypeAdapter[list[_AnyEdit]]] = TypeAdapter(list[_AnyEdit])


def edits_schema() -> dict[str, Any]:
    """The JSON Schema of a list of edits."""
    made: dict[str, Any] = json.loads(_schema_text())
    return made


@cache
def _schema_text() -> str:
    return json.dumps(_LIST.json_schema(by_alias=True))


def read_edits(given: str | Sequence[object]) -> tuple[Edit, ...]:
    """The edits in a JSON text, or in its data. What a model wrote is data, never code.

    Raises: `EditError` for the first that is none, with its number.
    """
    try:
        data = json.loads(given) if isinstance(given, str) else list(given)
    except (ValueError, RecursionError) as error:
        raise EditError(f"this is not JSON: {error}", edit="edits", hint="see the schema") from None
    if not isinstance(data, list) or len(data) > _MOST:
        hint = f"write a list of at most {_MOST:,} mappings with `edit` and `node`"
        raise EditError("edits are a list", edit="edits", hint=hint)
    return tuple(_edit(each, number) for number, each in enumerate(data, 1))


def _edit(given: object, number: int) -> Edit:
    name = given.get("edit") if isinstance(given, Mapping) else None
    kind = EDITS.get(name) if isinstance(name, str) else None
    if kind is None:
        hint = suggestion(name, EDITS, quote="`")
        raise EditError(f"edit {number} is no edit: {name!r:.60}", edit="edits", hint=hint)
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        node = given.get("node") if isinstance(given, Mapping) else None
        node = node if isinstance(node, str) else None
        raise EditError(f"`{where}`: {first['msg']}", edit=str(name), node=node) from None
