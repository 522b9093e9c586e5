"""Expands a JSON Schema into alternatives without references and compositions.

Constructs that cannot be expressed exactly are widened, never dropped: the checker and the tool
find the errors that this lets through.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final

from weft.core.schema import mismatch
from weft.core.schema.keywords import Part, conjuncts, parts, required
from weft.core.values import JsonSchema

Keywords = Mapping[str, Any]
"""A schema without references and compositions."""


class NoKeyword(Exception):
    """Two keywords have no conjunction; the message names them."""


def both(first: Keywords, second: Keywords) -> Keywords:
    """The schema of values that fit both.

    Raises: `NoKeyword` for keywords without a conjunction.
    """
    if not first or not second:
        return first or second
    joined = {**first, **second}
    for keyword in first.keys() & second.keys() & _JOINED.keys():
        joined[keyword] = _JOINED[keyword](first[keyword], second[keyword])
    for keyword in first.keys() & second.keys() & _ALIKE:
        if first[keyword] != second[keyword]:
            raise NoKeyword(f"two values of {keyword!r} at once")
    if "required" in joined:
        joined["required"] = list(dict.fromkeys([*required(first), *required(second)]))
    if "properties" in joined:
        joined["properties"] = _members(first, second)
    return joined


def _members(first: Keywords, second: Keywords) -> dict[str, Part]:
    own: Mapping[str, Part] = first.get("properties") or {}
    other: Mapping[str, Part] = second.get("properties") or {}
    return {
        name: _all_of(
            own.get(name, first.get("additionalProperties", True)),
            other.get(name, second.get("additionalProperties", True)),
        )
        for name in dict.fromkeys((*own, *other))
    }


def _all_of(first: Part, second: Part) -> Part:
    if first is False or second is False:
        return False
    stated = [part for part in (first, second) if part is not True]
    return {"allOf": stated} if len(stated) > 1 else next(iter(stated), True)


def _types(first: Any, second: Any) -> list[str]:
    one, other = ([kind] if isinstance(kind, str) else parts(kind) for kind in (first, second))
    kept = [kind for kind in one if kind in other]
    whole = {"number", "integer"}
    mixed = whole & {*one} and whole & {*other} and not whole & {*kept}
    return [*kept, "integer"] if mixed else kept


def _values(first: Any, second: Any) -> list[Any]:
    texts = {json.dumps(value, sort_keys=True) for value in parts(second)}
    return [value for value in parts(first) if json.dumps(value, sort_keys=True) in texts]


_JOINED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "type": _types,
    "enum": _values,
    "items": _all_of,
    "additionalProperties": _all_of,
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
    "uniqueItems": lambda first, second: bool(first or second),
}
_ALIKE: Final = frozenset({"const", "pattern", "format", "multipleOf", "prefixItems"})


_TAKEN_APART: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "$defs", "definitions"})
_MOST: Final = 64
_NOT_HELD: Final = (
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


def branches(schema: Part, root: JsonSchema, loosened: Callable[[str], None]) -> list[Keywords]:
    """Alternative sets of keywords, one of which a value has to fit; none where nothing fits.

    `loosened` receives what they leave open: a keyword that no grammar can express, a dangling
    reference, more than 64 alternatives.
    """
    return _SchemaAlternatives(root, loosened).of(schema)


class _SchemaAlternatives:
    def __init__(self, root: JsonSchema, loosened: Callable[[str], None]) -> None:
        self._root = root
        self._loosened = loosened
        self._open: set[int] = set()

    def of(self, schema: Part) -> list[Keywords]:
        if isinstance(schema, bool):
            return [{}] if schema else []
        if id(schema) in self._open:
            self._loosened("a schema that refers to itself and nothing else")
            return [{}]
        self._open.add(id(schema))
        try:
            return self._taken_apart(schema)
        finally:
            self._open.discard(id(schema))

    def _taken_apart(self, schema: Keywords) -> list[Keywords]:
        found: list[Keywords] = [self._own(schema)]
        holding = list(conjuncts(schema, self._root))
        if len(holding) != ("$ref" in schema) + len(parts(schema.get("allOf"))):
            self._loosened(f"the reference {schema.get('$ref')!r}")
        for part in holding:
            found = self._product(found, self.of(part))
        if "anyOf" in schema:
            found = self._product(found, self._any(parts(schema["anyOf"])))
        if "oneOf" in schema:
            self._check_exclusive(parts(schema["oneOf"]))
            found = self._product(found, self._any(parts(schema["oneOf"])))
        return found

    def _own(self, schema: Keywords) -> Keywords:
        """The schema's own keywords, as far as a grammar can express them."""
        own = {key: value for key, value in schema.items() if key not in _TAKEN_APART}
        for keyword in _NOT_HELD:
            if keyword in own:
                self._loosened(f"{keyword!r}")
                if keyword == "patternProperties":
                    own["additionalProperties"] = True
                del own[keyword]
        return own

    def _any(self, group: Sequence[Part]) -> list[Keywords]:
        return [keywords for part in group for keywords in self.of(part)]

    def _check_exclusive(self, group: Sequence[Part]) -> None:
        """Report whether a value may fit two of `group`."""
        definitions = {k: self._root[k] for k in ("$defs", "definitions") if k in self._root}
        alone = [{} if part is True else {**part, **definitions} for part in group if part]
        for first, second in combinations(alone, 2):
            if mismatch(first, second) is None:
                self._loosened("a 'oneOf' of which a value may fit two")
                return

    def _product(self, first: Sequence[Keywords], second: Sequence[Keywords]) -> list[Keywords]:
        if len(first) * len(second) > _MOST:
            self._loosened(f"more than {_MOST} alternatives")
            return [*first] if len(first) <= _MOST else [{}]
        return [self._both(one, other) for one in first for other in second]

    def _both(self, first: Keywords, second: Keywords) -> Keywords:
        try:
            return both(first, second)
        except NoKeyword as error:
            self._loosened(str(error))
            return first


def kinds_of(keywords: Keywords) -> Iterator[str]:
    """The JSON Schema types that `keywords` allow, by name."""
    stated = keywords.get("type")
    names = [stated] if isinstance(stated, str) else list(parts(stated))
    yield from names or ("string", "number", "boolean", "null", "array", "object")
