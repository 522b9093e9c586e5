"""The schema of a place in a value, and the properties that a schema declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

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

_DEFINITIONS: Final = ("$defs", "definitions")
_LOCAL: Final = ("#/$defs/", "#/definitions/")


def array_of(schema: JsonSchema | None) -> JsonSchema:
    """The schema of a list of values of `schema`; of a list of anything where that is None."""
    try:
        own = None if schema is None else standing_alone(schema, schema)
    except RecursionError:  # nested deeper than any schema written by hand
        own = None
    if own is None:
        return {"type": "array"}
    definitions = {key: own[key] for key in _DEFINITIONS if key in own}
    items = {key: value for key, value in own.items() if key not in _DEFINITIONS}
    return {"type": "array", "items": items, **definitions}


def standing_alone(part: JsonSchema, root: JsonSchema) -> JsonSchema | None:
    """`part` of `root` with the definitions it needs; None when it refers to anything else."""
    definitions = {key: root[key] for key in _DEFINITIONS if key in root}
    targets = set(references(part))
    if targets:
        targets.update(references(definitions))
    if not all(reference.startswith(_LOCAL) for reference in targets):
        return None
    return {**part, **definitions} if targets else part


def references(value: Any) -> Iterator[str]:
    """The target of every `$ref` inside `value`, a schema or a part of one."""
    if isinstance(value, Mapping):
        reference = value.get("$ref")
        if isinstance(reference, str):
            yield reference
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from references(item)


def at(schema: JsonSchema | None, path: Sequence[str | int]) -> JsonSchema | None:
    """The schema of what is at `path` inside a value of `schema`, or None where it is unknown.

    The result is self-contained, with the definitions that it refers to.

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
    except RecursionError:  # nested deeper than any schema written by hand
        return None


class _Lookup:
    """One step down from the place at the path `before`."""

    def __init__(self, root: JsonSchema, before: Sequence[str | int]) -> None:
        self._root = root
        self._place = _spelled(before)
        self._open: set[int] = set()

    def step(self, schema: Part, step: str | int) -> Part | None:
        """The schema of the part `step`; the conjunction of all that `schema` says of it."""
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
        schemas = [part for part in found if part is not None]
        return _joined("anyOf", schemas) if len(schemas) == len(found) else None

    def _own(self, schema: Mapping[str, Any], step: str | int) -> Part | None:
        left = kinds(schema)
        if isinstance(step, int) and left == {"object"} and member(schema, str(step)):
            step = str(step)  # the keys of an object are texts
        word = f"property {step!r}" if isinstance(step, str) else f"item {step}"
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


_Names = dict[str, None]
_NONE: _Names = {}


def declared(schema: JsonSchema | None) -> tuple[str, ...] | None:
    """The names of the properties that `schema` declares, in order.

    None where it declares none, or explicitly allows any others. A schema that merely does not
    forbid other names counts as closed: schemas hardly ever forbid them.
    """
    if schema is None:
        return None
    try:
        names = _DeclaredProperties(schema).names(schema)
    except RecursionError:  # nested deeper than any schema written by hand
        return None
    return None if names is None else tuple(names)


class _DeclaredProperties:
    """Walks one schema, whose references may form cycles."""

    def __init__(self, root: JsonSchema) -> None:
        self._root = root
        self._names: dict[int, _Names | None] = {}

    def names(self, part: Part) -> _Names | None:
        if not isinstance(part, Mapping):
            return None if part else _NONE
        if id(part) not in self._names:
            self._names[id(part)] = None  # a part that contains itself declares nothing
            self._names[id(part)] = self._of(part)
        return self._names[id(part)]

    def _of(self, part: Mapping[str, object]) -> _Names | None:
        if "object" not in kinds(part):
            return _NONE
        if part.get("additionalProperties") or "patternProperties" in part:
            return None
        groups = [self.names(one) for one in conjuncts(part, self._root)]
        for group in alternatives(part):
            branches = [self.names(one) for one in group]
            groups.append(None if None in branches else _union(branches))
        properties = part.get("properties")
        if isinstance(properties, Mapping) and properties:
            groups.insert(0, {name: None for name in properties if isinstance(name, str)})
        return _union(groups) if any(names is not None for names in groups) else None


def _union(groups: list[_Names | None]) -> _Names:
    return {name: None for group in groups for name in group or ()}
