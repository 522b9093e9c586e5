"""Schemas that no finite value fits, because some part of every value would have to hold itself.

Knows nothing of other contradictions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.core.schema.keywords import (
    Part,
    alternatives,
    conjuncts,
    count,
    element,
    kinds,
    listed,
    member,
    required,
)
from weft.core.values import JsonSchema

_MOST_STEPS: Final = 10_000


def endless(schema: JsonSchema) -> bool:
    """Whether every value of `schema` would go on for ever. False where that takes long to tell."""
    try:
        return not _Ending(schema).ends(schema)
    except RecursionError:  # nested deeper than anything that was written to be understood
        return False


class _Ending:
    """Looks for a way out of one schema."""

    def __init__(self, root: JsonSchema) -> None:
        self._root = root
        self._open: set[int] = set()
        self._steps = 0

    def ends(self, part: Part | None) -> bool:
        """Whether a value of `part` can end without holding one of the parts it is in."""
        self._steps += 1
        if not isinstance(part, Mapping) or self._steps > _MOST_STEPS:
            return True
        if id(part) in self._open:
            return False
        self._open.add(id(part))
        try:
            return self._own(part)
        finally:
            self._open.discard(id(part))

    def _own(self, part: Mapping[str, object]) -> bool:
        if listed(part) is not None:
            return True
        if not all(map(self.ends, conjuncts(part, self._root))):
            return False
        if not all(any(map(self.ends, group)) for group in alternatives(part)):
            return False
        kind = kinds(part)
        if kind == {"object"}:
            return all(self.ends(member(part, name)) for name in required(part))
        if kind == {"array"}:
            first = range(min(count(part, "minItems"), _MOST_STEPS))
            return all(self.ends(element(part, index)) for index in first)
        return True
