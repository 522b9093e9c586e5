"""The most work that a schema can cause for one value, with references followed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

SAME_VALUE: Final = frozenset(
    ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
)
"""Keywords whose schemas apply to the value itself, not to a part of it."""
SINGLE: Final = frozenset(
    (
        *("items", "additionalProperties", "contains", "propertyNames"),
        *("unevaluatedItems", "unevaluatedProperties", "not", "if", "then", "else"),
    )
)
LISTED: Final = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
NAMED: Final = frozenset(
    ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
)
REFUSED: Final = frozenset(
    (
        *("$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"),
        "$vocabulary",
    )
)
"""Keywords that change what references mean."""


def subschemas(schema: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The schemas directly inside `schema`, with their keywords; references are not followed."""
    for keyword, value in schema.items():
        if keyword in SINGLE:
            yield keyword, value
        elif keyword in LISTED and isinstance(value, list):
            yield from ((keyword, part) for part in value)
        elif keyword in NAMED and isinstance(value, Mapping):
            yield from ((keyword, part) for part in value.values())


def map_subschemas(keyword: object, value: Any, change: Callable[[Any], Any]) -> Any:
    """`value` of `keyword` with `change` applied to the schemas directly inside it."""
    if keyword in SINGLE:
        return change(value)
    if keyword in LISTED and isinstance(value, (list, tuple)):
        return [change(part) for part in value]
    if keyword in NAMED and isinstance(value, Mapping):
        return {str(name): change(part) for name, part in value.items()}
    return value


def reference_target(reference: str, root: object) -> object:
    """The part of `root` that a local reference names; None when there is none."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    for step in reference.split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(root, list):
            root = root[int(name)] if name.isdecimal() and int(name) < len(root) else None
        else:
            root = root.get(name) if isinstance(root, Mapping) else None
        if root is None:
            return None
    return root if isinstance(root, (Mapping, bool)) else None


_DEFINITIONS: Final = frozenset(("$defs", "definitions"))
_OBJECT: Final = (("properties", "additionalProperties"), ("unevaluatedProperties",))
_ARRAY: Final = (("items", "prefixItems"), ("contains",), ("unevaluatedItems",))


class EndlessSchema(ValueError):
    """A part of the schema refers to itself without descending into the value."""


@dataclass(frozen=True, slots=True)
class CheckWork:
    """Work of a check: `parts` subschemas applied, and the `pattern_weight` of all patterns."""

    parts: int = 0
    pattern_weight: int = 0

    def __add__(self, other: CheckWork) -> CheckWork:
        return CheckWork(self.parts + other.parts, self.pattern_weight + other.pattern_weight)


@dataclass(slots=True)
class SchemaCost:
    """The work of one schema.

    largest     the most that any part applies to one value
    fanout      how often at most one subschema is applied to the same part of a value
    whole       what the root applies to a value and all of its parts; None if it is recursive
    """

    root: Mapping[str, Any]
    weight: Callable[[str], int]
    largest: CheckWork = field(default_factory=CheckWork)
    fanout: int = 1
    whole: CheckWork | None = None
    _same: dict[int, tuple[CheckWork, int]] = field(default_factory=dict)
    _all: dict[int, CheckWork | None] = field(default_factory=dict)
    _open: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Raises: `EndlessSchema`."""
        for part in self._everywhere():
            work, fanout = self._on_same_value(part)
            self.fanout = max(self.fanout, fanout)
            self.largest = CheckWork(
                max(self.largest.parts, work.parts),
                max(self.largest.pattern_weight, work.pattern_weight),
            )
        self.whole = self._with_parts(self.root)

    def most_work(self, depth: int) -> CheckWork:
        """An upper bound for each of the values inside one value of nesting `depth`."""
        # The power is bounded to keep the number small.
        times = min(self.fanout ** min(depth, 40), 10**12)
        most = CheckWork(self.largest.parts * times, self.largest.pattern_weight * times)
        if self.whole is None:
            return most
        return CheckWork(
            min(most.parts, self.whole.parts), min(most.pattern_weight, self.whole.pattern_weight)
        )

    def _everywhere(self) -> Iterator[Mapping[str, Any]]:
        todo: list[object] = [self.root]
        visited: set[int] = set()
        while todo:
            part = todo.pop()
            if not isinstance(part, Mapping) or id(part) in visited:
                continue
            visited.add(id(part))
            yield part
            todo.extend(inner for _, inner in subschemas(part))
            todo.extend(self._referred(part))

    def _on_same_value(self, part: object) -> tuple[CheckWork, int]:
        """The work that `part` applies to a value itself, and its fanout to one part of it."""
        if not isinstance(part, Mapping):
            return CheckWork(1), 0
        key = id(part)
        if key in self._open:
            raise EndlessSchema("a part of it refers to itself without end")
        if key not in self._same:
            self._open.add(key)
            work, fanout = self._own(part), _fanout(part)
            for inner in self._same_value(part):
                further, times = self._on_same_value(inner)
                work, fanout = work + further, fanout + times
            self._open.discard(key)
            self._same[key] = work, fanout
        return self._same[key]

    def _with_parts(self, part: object) -> CheckWork | None:
        if not isinstance(part, Mapping):
            return CheckWork(1)
        key = id(part)
        if key in self._open:
            return None
        if key not in self._all:
            self._open.add(key)
            self._all[key] = self._sum(part)
            self._open.discard(key)
        return self._all[key]

    def _sum(self, part: Mapping[str, Any]) -> CheckWork | None:
        total = self._own(part)
        inside = (inner for keyword, inner in subschemas(part) if keyword not in _DEFINITIONS)
        for inner in (*inside, *self._referred(part)):
            work = self._with_parts(inner)
            if work is None:
                return None
            total = total + work
        return total

    def _own(self, part: Mapping[str, Any]) -> CheckWork:
        patterns = [part["pattern"]] if isinstance(part.get("pattern"), str) else []
        keys = part.get("patternProperties")
        patterns += list(keys) if isinstance(keys, Mapping) else []
        listed = sum(len(value) for value in part.values() if isinstance(value, (list, Mapping)))
        return CheckWork(1 + listed, sum(map(self.weight, patterns)))

    def _same_value(self, part: Mapping[str, Any]) -> Iterator[object]:
        yield from (inner for keyword, inner in subschemas(part) if keyword in SAME_VALUE)
        yield from self._referred(part)

    def _referred(self, part: Mapping[str, Any]) -> Iterator[object]:
        if isinstance(part.get("$ref"), str):
            yield reference_target(part["$ref"], self.root)


def _fanout(part: Mapping[str, Any]) -> int:
    keys = part.get("patternProperties")
    of_object = len(keys) if isinstance(keys, Mapping) else 0
    of_object += sum(any(keyword in part for keyword in group) for group in _OBJECT)
    of_array = sum(any(keyword in part for keyword in group) for group in _ARRAY)
    return max(of_object, of_array)
