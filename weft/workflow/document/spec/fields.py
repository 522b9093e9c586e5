"""The base of all parts of a document, and its field types: names, shorthands, quantities."""

from __future__ import annotations

import math
import re
from collections.abc import Container
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
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
"""Keywords of expressions, and names that bodies bind."""


def free_name(wanted: str, taken: Container[str], number: int = 1) -> str:
    """`wanted`, with a number appended if it is taken or reserved.

    `number`: all numbers up to it are known to be taken; 1 is `wanted` itself.
    """
    name = wanted if number == 1 else f"{wanted}_{number}"
    while name in taken or name in RESERVED:
        number += 1
        name = f"{wanted}_{number}"
    return name


def optional(description: str, **limits: Any) -> Any:
    """An optional field; None by default."""
    return Field(default=None, description=description, **limits)


def optional_list(description: str) -> Any:
    """An optional list; empty by default."""
    return Field(default_factory=list, description=description)


def optional_mapping(description: str, **limits: Any) -> Any:
    """An optional mapping; empty by default."""
    return Field(default_factory=dict, description=description, **limits)


class SpecPart(BaseModel):
    """A frozen piece of a document. Unknown keys are refused, and nothing is coerced."""

    model_config = ConfigDict(
        frozen=True,
        defer_build=True,  # most programs need few of the parts
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
"""Names of nodes, inputs, models and tools."""

Value = JsonValue
"""Plain data in which every text is a template, `{{ like.this }}`."""

Template = str
"""A text in which `{{ expressions }}` are replaced by values."""


def one_or_many(value: object) -> object:
    """A single text as a list of it."""
    return [value] if isinstance(value, str) else value


Names = Annotated[
    list[Name], BeforeValidator(one_or_many, json_schema_input_type=Name | list[Name])
]
"""A list of names, or a single name."""


def expands(key: str, shape: Any, kind: type = str) -> BeforeValidator:
    """A bare value of `kind` is short for a part with only `key`.

    `shape` is the type of all accepted values.
    """

    def expand(value: object) -> object:
        alone = isinstance(value, kind) and not isinstance(value, bool)
        return {key: value} if alone else value

    return BeforeValidator(expand, json_schema_input_type=shape)


def shortens(key: str) -> PlainSerializer:
    """A part with only `key` is written as that bare value."""

    def shorten(part: SpecPart) -> object:
        fields = part.model_dump(exclude_unset=True)
        return fields[key] if list(fields) == [key] else fields

    return PlainSerializer(shorten)


_TEXT = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z]+)\s*\Z", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TOKENS = {"tok": 1, "ktok": 1000}
_BYTES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def parse_duration(value: object) -> float:
    """Seconds. Raises: `ValueError` for what is not a duration."""
    return _parse(value, _SECONDS, "a duration such as 500ms, 30s, 2m or 1h")


def parse_size(value: object) -> int:
    """Bytes. Raises: `ValueError` for what is not a size."""
    return math.ceil(_parse(value, _BYTES, "a size such as 64KiB, 512MiB or 1GB"))


def parse_tokens(value: object) -> int:
    """A number of tokens. Raises: `ValueError` for what is not one."""
    return math.ceil(_parse(value, _TOKENS, "a number of tokens such as 20000, 20000tok or 20ktok"))


def format_duration(seconds: float) -> str | float:
    """The shortest text that `parse_duration` reads back as exactly `seconds`, else the number."""
    for unit in ("h", "m", "s", "ms"):
        for count in (round(seconds / _SECONDS[unit]), round(seconds / _SECONDS[unit], 3)):
            if count >= 1 and count * _SECONDS[unit] == seconds:
                return f"{count:g}{unit}" if count < 1e5 else seconds
    return seconds


def format_size(count: int) -> str | int:
    """The shortest text that `parse_size` reads back as exactly `count`, else the number."""
    for unit in ("GiB", "MiB", "KiB"):
        if count and count % _BYTES[unit] == 0:
            return f"{count // _BYTES[unit]}{unit}"
    return count


def _parse(value: object, units: dict[str, float] | dict[str, int], what: str) -> float:
    number = math.nan
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str) and (found := _TEXT.match(value)) and found["unit"] in units:
        number = float(found["number"]) * units[found["unit"]]
    if not (0 <= number < math.inf):
        raise PydanticCustomError("quantity", "expected {what}", {"what": what})
    return number


def _schema(units: dict[str, float] | dict[str, int]) -> dict[str, object]:
    pattern = rf"^\s*[0-9]+(\.[0-9]+)?\s*({'|'.join(units)})\s*$"
    return {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": pattern}]}


Duration = Annotated[
    float,
    BeforeValidator(lambda value: float(parse_duration(value))),
    PlainSerializer(format_duration),
    WithJsonSchema(_schema(_SECONDS)),
]
"""Seconds as a float; written with a unit."""

Size = Annotated[
    int, BeforeValidator(parse_size), PlainSerializer(format_size), WithJsonSchema(_schema(_BYTES))
]
"""Bytes as an int; written with a unit."""

Tokens = Annotated[int, BeforeValidator(parse_tokens), WithJsonSchema(_schema(_TOKENS))]
"""Tokens as an int; written with or without a unit."""
