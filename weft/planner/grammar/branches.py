"""A JSON Schema as alternatives without references and compositions.

Knows nothing of grammars; what cannot be told apart exactly is left out or refused, never widened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from weft.core.schema import mismatch
from weft.core.schema.keywords import Part, conjuncts, parts
from weft.core.values import JsonSchema
from weft.planner.grammar.conjunction import CannotHold, Keywords, both

_TAKEN_APART: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "$defs", "definitions"})
_MOST: Final = 64
_REFUSED: Final = (
    "not",
    "if",
    "contains",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "unevaluatedItems",
    "$dynamicRef",
    "$recursiveRef",
)


def branches(schema: Part, root: JsonSchema) -> list[Keywords]:
    """Keywords of which a value has to fit one set; none where nothing fits.

    Raises: `CannotHold` for a keyword that no grammar can hold a value to, for a reference that
    leads nowhere, and for more than 64 alternatives.
    """
    return _Branches(root).of(schema)


class _Branches:
    def __init__(self, root: JsonSchema) -> None:
        self._root = root
        self._open: set[int] = set()

    def of(self, schema: Part) -> list[Keywords]:
        if isinstance(schema, bool):
            return [{}] if schema else []
        if id(schema) in self._open:
            raise CannotHold("a schema that refers to itself and nothing else")
        self._open.add(id(schema))
        try:
            return self._taken_apart(schema)
        finally:
            self._open.discard(id(schema))

    def _taken_apart(self, schema: Keywords) -> list[Keywords]:
        _refuse(schema)
        found: list[Keywords] = [{k: v for k, v in schema.items() if k not in _TAKEN_APART}]
        holding = list(conjuncts(schema, self._root))
        if len(holding) != ("$ref" in schema) + len(parts(schema.get("allOf"))):
            raise CannotHold(f"the reference {schema.get('$ref')!r}")
        for part in holding:
            found = _product(found, self.of(part))
        if "anyOf" in schema:
            found = _product(found, self._any(parts(schema["anyOf"])))
        if "oneOf" in schema:
            found = _product(found, self._any(self._exclusive(parts(schema["oneOf"]))))
        return found

    def _any(self, group: Sequence[Part]) -> list[Keywords]:
        return [keywords for part in group for keywords in self.of(part)]

    def _exclusive(self, group: Sequence[Part]) -> Sequence[Part]:
        """`group`, where nothing can fit two of it."""
        definitions = {k: self._root[k] for k in ("$defs", "definitions") if k in self._root}
        alone = [{} if part is True else {**part, **definitions} for part in group if part]
        for first, second in combinations(alone, 2):
            if mismatch(first, second) is None:
                raise CannotHold("a 'oneOf' of which a value may fit two")
        return group


def _product(first: Sequence[Keywords], second: Sequence[Keywords]) -> list[Keywords]:
    found = [both(one, other) for one in first for other in second]
    if len(found) > _MOST:
        raise CannotHold(f"more than {_MOST} alternatives")
    return found


def _refuse(schema: Keywords) -> None:
    for keyword in _REFUSED:
        if keyword in schema:
            raise CannotHold(f"{keyword!r}")


def kinds_of(keywords: Keywords) -> Iterator[str]:
    """The JSON Schema types that `keywords` leave, each by its name."""
    stated = keywords.get("type")
    names = [stated] if isinstance(stated, str) else list(parts(stated))
    yield from names or ("string", "number", "boolean", "null", "array", "object")
