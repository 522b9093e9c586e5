"""The bounds of schemas and values, and the errors of what exceeds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

MAX_SCHEMA_CHARS: Final = 200_000
MAX_SCHEMA_PARTS: Final = 10_000
MAX_SCHEMA_DEPTH: Final = 64
MAX_PATTERNS: Final = 100
MAX_PATTERN_BYTES: Final = 128 * 1024
"""Memory of one compiled pattern."""
MAX_EXPANSION: Final = 10_000
"""Subschemas that may apply to one value at once, with all references followed."""
MAX_VALUE_DEPTH: Final = 200
TIME_LIMIT_S: Final = 5.0
"""Processor time of a check in its own process."""
WAIT_LIMIT_S: Final = 60.0
"""Wall time of such a check, also on a busy machine."""


class SchemaRefused(ValueError):
    """The schema cannot be used; the message says why.

    `place` is the path to the faulty part, as far as known, and `found` its value.
    """

    def __init__(self, message: str, place: Sequence[str | int] = (), found: object = None) -> None:
        super().__init__(message)
        self.place = tuple(place)
        self.found = found


class TooMuchToCheck(ValueError):
    """Value and schema together need more work than the limits allow."""


def parts_of(root: object, most: int = MAX_SCHEMA_PARTS) -> Iterator[object]:
    """All values inside a schema, itself included. Raises: `SchemaRefused` above the bounds."""
    todo: list[tuple[object, int]] = [(root, 1)]
    count = 0
    while todo:
        value, depth = todo.pop()
        count += 1
        if count > most:
            raise SchemaRefused(f"a schema of more than {most:,} parts")
        if depth > MAX_SCHEMA_DEPTH:
            raise SchemaRefused(f"a schema nested deeper than {MAX_SCHEMA_DEPTH} levels")
        yield value
        if isinstance(value, Mapping):
            todo.extend((inner, depth + 1) for inner in value.values())
        elif isinstance(value, (list, tuple)):
            todo.extend((inner, depth + 1) for inner in value)


MOST_COUNTED: Final = 20_000
"""Most values counted; a value with more is large in any case."""
_SCALARS: Final = (str, int, float, bool, type(None))


class NotJson(ValueError):
    """A value, or a part of it, that has no JSON form."""


@dataclass(slots=True)
class ValueSize:
    """`values` inside, itself included; `chars` of its texts and keys; depth of nesting."""

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
