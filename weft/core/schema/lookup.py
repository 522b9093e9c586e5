"""What a schema says of the value at a path of property names and list indexes.

Knows no values: a path that may or may not exist at run time exists here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.core.schema.definitions import standing_alone
from weft.core.schema.keywords import (
    Part,
    alternatives,
    conjuncts,
    element,
    kinds,
    meant,
    member,
    named,
)
from weft.core.values import JsonSchema


def at(schema: JsonSchema | None, path: Sequence[str | int]) -> JsonSchema | None:
    """The schema of what lies at `path` inside a value of `schema`, or None when it does not say.

    The result stands alone: it brings the definitions it refers to.

    Raises: `LookupError`, in words, when no value of `schema` has anything there.
    """
    if schema is None:
        return None
    found: Part | None = schema
    try:
        for depth, step in enumerate(path):
            found = None if found is None else _Lookup(schema, path[:depth]).step(found, step)
        if found is schema:
            return schema
        return standing_alone(found, schema) if isinstance(found, Mapping) else None
    except RecursionError:  # nested deeper than anything that was written to be understood
        return None


class _Lookup:
    """One step down from the place that the path `before` leads to."""

    def __init__(self, root: JsonSchema, before: Sequence[str | int]) -> None:
        self._root = root
        self._place = _spelled(before)
        self._open: set[int] = set()

    def step(self, schema: Part, step: str | int) -> Part | None:
        """What `schema` says of its part `step`; the conjunction of all it says."""
        if schema is False:
            raise LookupError(f"{self._place} never has a value")
        if not isinstance(schema, Mapping) or id(schema) in self._open:
            return None
        self._open.add(id(schema))
        try:
            found = [self._own(schema, step)]
            found += [self.step(part, step) for part in conjuncts(schema, self._root)]
            found += [self._any_of(group, step) for group in alternatives(schema)]
        finally:
            self._open.discard(id(schema))
        return _joined("allOf", [part for part in found if part is not None])

    def _any_of(self, group: Sequence[Part], step: str | int) -> Part | None:
        found: list[Part | None] = []
        failures: list[LookupError] = []
        for part in group:
            try:
                found.append(self.step(part, step))
            except LookupError as error:
                failures.append(error)
        if not found:
            raise failures[0]
        known = [part for part in found if part is not None]
        return _joined("anyOf", known) if len(known) == len(found) else None

    def _own(self, schema: Mapping[str, Any], step: str | int) -> Part | None:
        word = f"property {step!r}" if isinstance(step, str) else f"item {step}"
        left = kinds(schema)
        if ("object" if isinstance(step, str) else "array") not in left:
            raise LookupError(f"{self._place} is {named(left) or 'nothing'} and has no {word}")
        if isinstance(step, str):
            found, instead = member(schema, step), meant(step, schema)
        else:
            found, instead = element(schema, step), ""
        if found is False:
            raise LookupError(f"{self._place} has no {word}{instead}")
        return found


def _joined(keyword: str, found: list[Part]) -> Part | None:
    return {keyword: found} if len(found) > 1 else next(iter(found), None)


def _spelled(path: Sequence[str | int]) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).lstrip(".") or "the value"
