"""The base of every part of a document, and the small types its fields are made of."""

from __future__ import annotations

from collections.abc import Container
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    JsonValue,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from weft.core.ids import is_name

RESERVED = frozenset(
    (
        *("and", "or", "not", "in", "is", "if", "else", "for", "recursive"),
        *("true", "false", "none", "True", "False", "None"),
        *("loop", "self", "super", "caller", "varargs", "kwargs", "range", "index", "iteration"),
    )
)
"""Words with a meaning of their own inside expressions, or bound in bodies."""


def free_name(wanted: str, taken: Container[str], number: int = 1) -> str:
    """`wanted`, with a number behind it if that is taken or reserved.

    `number`: all up to it are known to be taken; 1 is `wanted` itself.
    """
    name = wanted if number == 1 else f"{wanted}_{number}"
    while name in taken or name in RESERVED:
        number += 1
        name = f"{wanted}_{number}"
    return name


class Part(BaseModel):
    """A frozen piece of a document. Unknown keys are refused, and nothing is coerced."""

    model_config = ConfigDict(
        frozen=True,
        defer_build=True,  # most programs need few of the parts alone
        extra="forbid",
        strict=True,
        validate_by_name=False,
        validate_by_alias=True,
        serialize_by_alias=True,
        protected_namespaces=(),
    )


def _check_name(text: str) -> str:
    if not is_name(text):
        raise PydanticCustomError(
            "name", "{text} is not a name: use letters, digits and _", {"text": repr(text)}
        )
    if text in RESERVED:
        raise PydanticCustomError("name", "{text} is a word of expressions", {"text": repr(text)})
    return text


Name = TypeAliasType(
    "Name",
    Annotated[
        str,
        AfterValidator(_check_name),
        WithJsonSchema(
            {
                "type": "string",
                "pattern": "^[A-Za-z_][A-Za-z0-9_]*$",
                "not": {"enum": sorted(RESERVED)},
            }
        ),
    ],
)
"""What nodes, inputs, models and tools are called."""

Value = JsonValue
"""Plain data in which every text is a template, `{{ like.this }}`."""

Template = str
"""A text in which `{{ expressions }}` are replaced by values."""


def one_or_many(value: object) -> object:
    """A text that stands alone, as a list."""
    return [value] if isinstance(value, str) else value


Names = Annotated[
    list[Name],
    BeforeValidator(one_or_many, json_schema_input_type=Name | list[Name]),
]
"""A list of names; a single one may stand alone."""
