"""How large a JSON value is, as plain data that the validator reads. Knows no schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft.validation.bounds import MAX_VALUE_DEPTH, TooMuchToCheck

MOST_COUNTED: Final = 20_000
"""Values that are counted; one that holds more is large in any case."""
_SCALARS: Final = (str, int, float, bool, type(None))


class NotJson(ValueError):
    """A value, or a part of it, that JSON does not have."""


@dataclass(slots=True)
class ValueSize:
    """`values` in it, itself included; `chars` of its texts and keys; how deeply nested it is."""

    values: int = 0
    chars: int = 0
    depth: int = 0

    @property
    def counted(self) -> bool:
        """False where counting ended early."""
        return self.values <= MOST_COUNTED


def size_of(value: object) -> ValueSize:
    """Raises: `TooMuchToCheck` for a value that is nested too deeply."""
    size = ValueSize()
    todo: list[tuple[object, int]] = [(value, 0)]
    while todo and size.counted:
        item, depth = todo.pop()
        size.values += 1
        size.depth = max(size.depth, depth)
        if depth > MAX_VALUE_DEPTH:
            raise TooMuchToCheck("it is nested too deeply")
        if isinstance(item, str):
            size.chars += len(item)
        elif isinstance(item, Mapping):
            size.chars += sum(len(key) for key in item if isinstance(key, str))
            todo.extend((inner, depth + 1) for inner in item.values())
        elif isinstance(item, (list, tuple)):
            todo.extend((inner, depth + 1) for inner in item)
    return size


def plain(value: Any) -> Any:
    """`value` as dicts, lists and scalars. Raises: `NotJson`, `RecursionError`."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise NotJson("the keys of an object are texts")
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    raise NotJson(f"JSON has no {type(value).__name__}")
