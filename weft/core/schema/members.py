"""Which properties a schema declares. Knows no values and judges nothing."""

from __future__ import annotations

from collections.abc import Mapping

from weft.core.schema.keywords import Part, alternatives, conjuncts, kinds
from weft.core.values import JsonSchema

_Names = dict[str, None]
_NONE: _Names = {}


def declared(schema: JsonSchema | None) -> tuple[str, ...] | None:
    """The names of the properties that a value of `schema` is said to have, in order.

    None where nothing is said of them, or where it is said that there may be any others. That a
    schema does not forbid other names does not count: schemas hardly ever do.
    """
    if schema is None:
        return None
    try:
        names = _Declared(schema).names(schema)
    except RecursionError:  # nested deeper than anything that was written to be understood
        return None
    return None if names is None else tuple(names)


class _Declared:
    """Goes through one schema, in which references lead around."""

    def __init__(self, root: JsonSchema) -> None:
        self._root = root
        self._seen: dict[int, _Names | None] = {}

    def names(self, part: Part) -> _Names | None:
        if not isinstance(part, Mapping):
            return None if part else _NONE
        if id(part) not in self._seen:
            self._seen[id(part)] = None  # a part that meets itself says nothing
            self._seen[id(part)] = self._found(part)
        return self._seen[id(part)]

    def _found(self, part: Mapping[str, object]) -> _Names | None:
        if "object" not in kinds(part):
            return _NONE
        if part.get("additionalProperties") or "patternProperties" in part:
            return None
        said = [self.names(one) for one in conjuncts(part, self._root)]
        for group in alternatives(part):
            ways = [self.names(one) for one in group]
            said.append(None if None in ways else _union(ways))
        properties = part.get("properties")
        if isinstance(properties, Mapping) and properties:
            said.insert(0, {name: None for name in properties if isinstance(name, str)})
        return _union(said) if any(names is not None for names in said) else None


def _union(groups: list[_Names | None]) -> _Names:
    return {name: None for group in groups for name in group or ()}
