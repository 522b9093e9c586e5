"""Durations, sizes and tokens as people write them: `500ms`, `2m`; `512KiB`, `1GiB`; `20000tok`.

A bare number is seconds, bytes, or tokens.
"""

from __future__ import annotations

import math
import re
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

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
    int,
    BeforeValidator(parse_size),
    PlainSerializer(format_size),
    WithJsonSchema(_schema(_BYTES)),
]
"""Bytes as an int; written with a unit."""

Tokens = Annotated[
    int,
    BeforeValidator(parse_tokens),
    WithJsonSchema(_schema(_TOKENS)),
]
"""Tokens as an int; written with or without a unit."""
