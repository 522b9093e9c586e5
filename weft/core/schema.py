"""Two questions about JSON Schemas: can a value of one ever fit the other, and what lies at a path.

Knows no validation of values. Keywords it does not understand count as "anything may be": answers
are only given where they can be proved, so there are no false alarms.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from weft.core.values import JsonSchema

# JSON Schema's "number" is an integer or a fraction; 1.0 counts as an integer.
_ATOMS: Final[dict[str, frozenset[str]]] = {
    "null": frozenset({"null"}),
    "boolean": frozenset({"boolean"}),
    "integer": frozenset({"integer"}),
    "number": frozenset({"integer", "fraction"}),
    "string": frozenset({"string"}),
    "array": frozenset({"array"}),
    "object": frozenset({"object"}),
}
_ALL: Final = frozenset().union(*_ATOMS.values())
_DEFINITIONS: Final = ("$defs", "definitions")

_Part: TypeAlias = Mapping[str, Any] | bool


def mismatch(source: JsonSchema | None, target: JsonSchema | None) -> str | None:
    """Why a value of `source` can never fit `target`, in words, or None when it may fit.

    Schemas that are None may be anything. An empty list or object fits nearly everything, but says
    nothing: lists (or open-keyed objects) whose items can never fit are a mismatch all the same.
    """
    if source is None or target is None:
        return None
    try:
        return _Comparison(source, target).clash(source, target)
    except RecursionError:  # nested deeper than anything a person or a program wrote on purpose
        return None


def at(schema: JsonSchema | None, path: Sequence[str | int]) -> JsonSchema | None:
    """The schema of what lies at `path` (property names and list indexes) inside a value.

    None when the schema does not say. The result is complete in itself: it carries definitions.

    Raises: `LookupError`, in words, when no value of `schema` has anything there.
    """
    if schema is None:
        return None
    found: _Part | None = schema
    try:
        for depth, step in enumerate(path):
            if found is None:
                return None
            found = _Lookup(schema, _spelled(path[:depth])).step(found, step)
        return None if found is None else _complete(found, schema)
    except RecursionError:
        return None


class _Comparison:
    """One comparison of two schemas; remembers the pairs it has seen, so that cycles end."""

    def __init__(self, source: JsonSchema, target: JsonSchema) -> None:
        self._source = source
        self._target = target
        self._seen: dict[tuple[int, int], str | None] = {}

    def clash(self, a: _Part, b: _Part) -> str | None:
        """Why no value fits both `a` (of the source) and `b` (of the target), or None."""
        if a is False or b is False:
            return "no value is allowed here"
        if not isinstance(a, Mapping) or not isinstance(b, Mapping):
            return None
        key = (id(a), id(b))
        if key not in self._seen:
            self._seen[key] = None  # a pair that meets itself again proves nothing
            self._seen[key] = self._own(a, b) or self._composed(a, b)
        return self._seen[key]

    def _composed(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> str | None:
        def with_a(part: _Part) -> str | None:
            return self.clash(a, part)

        def with_b(part: _Part) -> str | None:
            return self.clash(part, b)

        return _first(_ruled_out(a, self._source, with_b)) or _first(
            _ruled_out(b, self._target, with_a)
        )

    def _own(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> str | None:
        """The clash of the two schemas' own keywords, without references and compositions."""
        kinds_a, kinds_b = _kinds(a), _kinds(b)
        shared = kinds_a & kinds_b
        if not shared:
            return f"{_named(kinds_a)} can never be {_named(kinds_b)}"
        values = self._values(a, b)
        if values is not None:
            return values
        if shared == {"object"}:
            return _first(self._properties(a, b)) or self._keyed(a, b)
        if shared == {"array"}:
            return self._items(a, b)
        return None

    @staticmethod
    def _values(a: Mapping[str, Any], b: Mapping[str, Any]) -> str | None:
        given, taken = _listed(a), _listed(b)
        if given is None or taken is None or any(value in taken for value in given):
            return None
        return f"{_quoted(given)} is never {_quoted(taken)}"

    def _properties(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str | None]:
        for name in _required(b):
            yield self._property(name, a, b)
        for name in _required(a):
            yield self._property(name, a, b)

    def _property(self, name: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> str | None:
        given, taken = _member(a, name), _member(b, name)
        if given is False:
            return f"it has no property {name!r}{_meant(name, a)}"
        if taken is False:
            return f"the property {name!r} is not allowed{_meant(name, b)}"
        return None if given is None or taken is None else _inside(name, self.clash(given, taken))

    def _keyed(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> str | None:
        given, taken = _any_member(a), _any_member(b)
        return None if given is None or taken is None else _inside("*", self.clash(given, taken))

    def _items(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> str | None:
        for index in range(max(_count(a, "minItems"), _count(b, "minItems"))):
            given, taken = _element(a, index), _element(b, index)
            if given is None and taken is None:
                break
            if given is not None and taken is not None and (why := self.clash(given, taken)):
                return _inside(f"[{index}]", why)
        if "prefixItems" in a or "prefixItems" in b:
            return None
        given, taken = _element(a, 0), _element(b, 0)
        return None if given is None or taken is None else _inside("[]", self.clash(given, taken))


def _ruled_out(
    schema: Mapping[str, Any], root: JsonSchema, clash: Callable[[_Part], str | None]
) -> Iterator[str | None]:
    """What `clash` says of everything that `schema` refers to or is composed of."""
    for part in _conjuncts(schema, root):
        yield clash(part)
    for group in _alternatives(schema):
        reasons = [clash(part) for part in group]
        yield " and ".join(dict.fromkeys(filter(None, reasons))) if all(reasons) else None


class _Lookup:
    """One step down a path. `place` is where the value lies that the step starts from, in words."""

    def __init__(self, root: JsonSchema, place: str) -> None:
        self._root = root
        self._place = place
        self._open: set[int] = set()

    def step(self, schema: _Part, step: str | int) -> _Part | None:
        if schema is False:
            raise LookupError(f"{self._place} never has a value")
        if not isinstance(schema, Mapping) or id(schema) in self._open:
            return None
        self._open.add(id(schema))
        try:
            found = [self._own(schema, step)]
            found += [self.step(part, step) for part in _conjuncts(schema, self._root)]
            found += [self._any_of(group, step) for group in _alternatives(schema)]
        finally:
            self._open.discard(id(schema))
        return _one_of("allOf", [part for part in found if part is not None])

    def _any_of(self, group: Sequence[_Part], step: str | int) -> _Part | None:
        found: list[_Part | None] = []
        failures: list[LookupError] = []
        for part in group:
            try:
                found.append(self.step(part, step))
            except LookupError as error:
                failures.append(error)
        if failures and not found:
            raise failures[0]
        known = [part for part in found if part is not None]
        return _one_of("anyOf", known) if len(known) == len(found) else None

    def _own(self, schema: Mapping[str, Any], step: str | int) -> _Part | None:
        needed = "object" if isinstance(step, str) else "array"
        kinds = _kinds(schema)
        if needed not in kinds:
            what = f"property {step!r}" if isinstance(step, str) else f"item {step}"
            raise LookupError(f"{self._place} is {_named(kinds)}, it has no {what}")
        if isinstance(step, int):
            found = False if _beyond(schema, step) else _element(schema, step)
            if found is False:
                raise LookupError(f"{self._place} has no item {step}")
            return found
        found = _member(schema, step)
        if found is False:
            raise LookupError(f"{self._place} has no property {step!r}{_meant(step, schema)}")
        return found


def _kinds(schema: Mapping[str, Any]) -> frozenset[str]:
    """The kinds of values that `type`, `const` and `enum` leave."""
    stated = schema.get("type", [])
    names = [stated] if isinstance(stated, str) else stated
    kinds = _ALL
    if isinstance(names, Sequence) and names and all(name in _ATOMS for name in names):
        kinds = frozenset().union(*(_ATOMS[name] for name in names))
    values = _listed(schema)
    return kinds if values is None else kinds & {_kind(value) for value in values}


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "fraction"
        case str():
            return "string"
        case Mapping():
            return "object"
        case _:
            return "array"


def _listed(schema: Mapping[str, Any]) -> Sequence[Any] | None:
    """All values the schema allows, where it lists them."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, (list, tuple)) else None


def _conjuncts(schema: Mapping[str, Any], root: JsonSchema) -> Iterator[_Part]:
    """Schemas that hold as well: the reference's target and the members of allOf."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = _resolve(reference, root)
        if target is not None:
            yield target
    yield from _parts(schema.get("allOf"))


def _alternatives(schema: Mapping[str, Any]) -> Iterator[Sequence[_Part]]:
    """Groups of schemas of which at least one holds."""
    for keyword in ("anyOf", "oneOf"):
        group = _parts(schema.get(keyword))
        if group:
            yield group


def _parts(value: Any) -> Sequence[_Part]:
    return value if isinstance(value, (list, tuple)) else ()


def _resolve(reference: str, root: JsonSchema) -> _Part | None:
    """The target of a reference within the document, or None when it is elsewhere or missing."""
    if not reference.startswith("#"):
        return None
    found: Any = root
    for step in reference[1:].split("/")[1:]:
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if _is_map(found) else None
    return found if isinstance(found, (Mapping, bool)) else None


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping)


def _required(schema: Mapping[str, Any]) -> Sequence[str]:
    names = schema.get("required")
    return [n for n in names if isinstance(n, str)] if isinstance(names, (list, tuple)) else []


def _member(schema: Mapping[str, Any], name: str) -> _Part | None:
    """The schema of a property: False when it cannot be there, None when nothing is said."""
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and name in properties:
        return _part(properties[name])
    if "patternProperties" in schema:
        return None
    return _part(schema.get("additionalProperties"))


def _any_member(schema: Mapping[str, Any]) -> _Part | None:
    """The schema of every property of an object whose keys are all free."""
    if any(key in schema for key in ("properties", "patternProperties")):
        return None
    return _part(schema.get("additionalProperties"))


def _element(schema: Mapping[str, Any], index: int) -> _Part | None:
    """The schema of item `index`: False when it cannot be there, None when nothing is said."""
    prefix = _parts(schema.get("prefixItems"))
    return _part(prefix[index] if 0 <= index < len(prefix) else schema.get("items"))


def _beyond(schema: Mapping[str, Any], index: int) -> bool:
    return "maxItems" in schema and index >= _count(schema, "maxItems")


def _count(schema: Mapping[str, Any], keyword: str) -> int:
    value = schema.get(keyword)
    return int(value) if isinstance(value, (int, float)) else 0


def _part(value: Any) -> _Part | None:
    return value if isinstance(value, (Mapping, bool)) else None


def _one_of(keyword: str, parts: list[_Part]) -> _Part | None:
    return {keyword: parts} if len(parts) > 1 else (parts[0] if parts else None)


def _complete(found: _Part, root: JsonSchema) -> JsonSchema | None:
    """`found` with the definitions of `root`; None when it refers to anything else of `root`."""
    if found is root or not isinstance(found, Mapping):
        return root if found is root else None
    definitions = {key: root[key] for key in _DEFINITIONS if key in root}
    whole = {**found, **definitions}
    prefixes = tuple(f"#/{key}/" for key in definitions)
    references = list(_references(found))
    if not references:
        return found
    references += _references(definitions)
    return whole if all(reference.startswith(prefixes) for reference in references) else None


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key == "$ref" and isinstance(item, str):
                yield item
            yield from _references(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _references(item)


def _first(reasons: Iterator[str | None]) -> str | None:
    return next(filter(None, reasons), None)


def _inside(place: str, reason: str | None) -> str | None:
    """`reason` with the step before its place: "docs" + "[]: why" is "docs[]: why"."""
    if reason is None:
        return None
    inner, found, why = reason.partition(": ")
    if not found or " " in inner:
        return f"{place}: {reason}"
    return f"{place}{inner if inner.startswith('[') else '.' + inner}: {why}"


def _spelled(path: Sequence[str | int]) -> str:
    spelled = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in path).lstrip(".")
    return spelled or "the value"


def _named(kinds: frozenset[str]) -> str:
    names = sorted(kinds - {"fraction"} - ({"integer"} if "fraction" in kinds else set()))
    names += ["number"] if "fraction" in kinds else []
    return " or ".join(names) or "nothing"


def _quoted(values: Sequence[Any]) -> str:
    shown = [repr(value)[:40] for value in values[:5]] + (["..."] if len(values) > 5 else [])
    return " or ".join(shown)


def _meant(name: str, schema: Mapping[str, Any]) -> str:
    properties = schema.get("properties")
    names = [str(key) for key in properties] if isinstance(properties, Mapping) else []
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; it has {', '.join(names[:8])}" if names else ""
