"""Any Python value made of what JSON has. Never raises: what JSON lacks becomes text."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import TypeAlias

from weft.core.secrets import hidden

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

_DEEPEST = 60


def plain(value: object, depth: int = 0) -> Json:
    """`value` as JSON has it. NaN and infinity, cycles and foreign objects become text."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, depth + 1) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: plain(getattr(value, field.name), depth + 1) for field in fields}
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(mode="json"), depth + 1)
    return repr(value)


def json_text(value: object) -> str:
    """`value`, made of what JSON has, as it is printed: on one line, and without secrets."""
    return json.dumps(hidden(value))
