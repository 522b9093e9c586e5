"""How much work a schema can ask of a validator for one value, with references followed.

Knows schemas of bounded size whose references lead into themselves; compiles and checks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from weft.validation.keywords import SAME_VALUE, subschemas
from weft.validation.reference import reference_target

_DEFINITIONS: Final = frozenset(("$defs", "definitions"))
_OBJECT: Final = (("properties", "additionalProperties"), ("unevaluatedProperties",))
_ARRAY: Final = (("items", "prefixItems"), ("contains",), ("unevaluatedItems",))


class Endless(ValueError):
    """A part of the schema refers to itself without going into the value."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is applied: `parts` subschemas, and patterns of together this `pattern_weight`."""

    parts: int = 0
    pattern_weight: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.parts + other.parts, self.pattern_weight + other.pattern_weight)


@dataclass(slots=True)
class Expansion:
    """The work of one schema.

    largest     of all parts, what one of them applies to one and the same value
    fanout      how often, at most, one subschema is applied to the same part of a value
    whole       what the root applies to a value and all of its parts; None: it is recursive
    """

    root: Mapping[str, Any]
    weight: Callable[[str], int]
    largest: Work = field(default_factory=Work)
    fanout: int = 1
    whole: Work | None = None
    _same: dict[int, tuple[Work, int]] = field(default_factory=dict)
    _all: dict[int, Work | None] = field(default_factory=dict)
    _open: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Raises: `Endless`."""
        for part in self._everywhere():
            work, fanout = self._on_same_value(part)
            self.fanout = max(self.fanout, fanout)
            self.largest = Work(
                max(self.largest.parts, work.parts),
                max(self.largest.pattern_weight, work.pattern_weight),
            )
        self.whole = self._with_parts(self.root)

    def most_work(self, depth: int) -> Work:
        """At most this for each of the values in one value that is nested `depth` deep."""
        # The power is bounded so that it stays a number of ordinary size.
        times = min(self.fanout ** min(depth, 40), 10**12)
        most = Work(self.largest.parts * times, self.largest.pattern_weight * times)
        if self.whole is None:
            return most
        return Work(
            min(most.parts, self.whole.parts), min(most.pattern_weight, self.whole.pattern_weight)
        )

    def _everywhere(self) -> Iterator[Mapping[str, Any]]:
        todo: list[object] = [self.root]
        seen: set[int] = set()
        while todo:
            part = todo.pop()
            if not isinstance(part, Mapping) or id(part) in seen:
                continue
            seen.add(id(part))
            yield part
            todo.extend(inner for _, inner in subschemas(part))
            todo.extend(self._referred(part))

    def _on_same_value(self, part: object) -> tuple[Work, int]:
        """What `part` applies to a value itself, and how often to one part of it."""
        if not isinstance(part, Mapping):
            return Work(1), 0
        key = id(part)
        if key in self._open:
            raise Endless("a part of it refers to itself without end")
        if key not in self._same:
            self._open.add(key)
            work, fanout = self._own(part), _fanout(part)
            for inner in self._same_value(part):
                further, times = self._on_same_value(inner)
                work, fanout = work + further, fanout + times
            self._open.discard(key)
            self._same[key] = work, fanout
        return self._same[key]

    def _with_parts(self, part: object) -> Work | None:
        if not isinstance(part, Mapping):
            return Work(1)
        key = id(part)
        if key in self._open:
            return None
        if key not in self._all:
            self._open.add(key)
            self._all[key] = self._sum(part)
            self._open.discard(key)
        return self._all[key]

    def _sum(self, part: Mapping[str, Any]) -> Work | None:
        total = self._own(part)
        inside = (inner for keyword, inner in subschemas(part) if keyword not in _DEFINITIONS)
        for inner in (*inside, *self._referred(part)):
            work = self._with_parts(inner)
            if work is None:
                return None
            total = total + work
        return total

    def _own(self, part: Mapping[str, Any]) -> Work:
        patterns = [part["pattern"]] if isinstance(part.get("pattern"), str) else []
        keys = part.get("patternProperties")
        patterns += list(keys) if isinstance(keys, Mapping) else []
        listed = sum(len(value) for value in part.values() if isinstance(value, (list, Mapping)))
        return Work(1 + listed, sum(map(self.weight, patterns)))

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
