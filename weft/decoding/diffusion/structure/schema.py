"""A JSON Schema as parts of a skeleton: properties in the order of the schema, no free spaces.

What is written always fits; what could be written beside it is listed in `narrowed`. Sub-schemas
that may hold themselves are looked into when they are chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

from weft.decoding.diffusion.structure.arrays import Arrays
from weft.decoding.diffusion.structure.factored import factored
from weft.decoding.diffusion.structure.fixed import fixed
from weft.decoding.diffusion.structure.keywords import (
    OF_TYPE,
    Schema,
    both,
    checked,
    has_type,
    same,
    spelled,
    types,
    without,
)
from weft.decoding.diffusion.structure.languages import Languages
from weft.decoding.diffusion.structure.objects import Objects
from weft.decoding.diffusion.structure.parts import Choice, Parts, Text, joined
from weft.decoding.diffusion.structure.pattern import Either
from weft.decoding.diffusion.structure.refused import NotASkeleton
from weft.decoding.diffusion.structure.scalars import (
    listed_numbers,
    listed_strings,
    number_pattern,
    string_parts,
    string_pattern,
)
from weft.decoding.diffusion.structure.unions import disjoint, listed, plain_type

_ANYTHING: Final = ("string", "number", "boolean", "null", "array", "object")
_MOST_CHOICES: Final = 3000
_MOST_TEXT: Final = 1_000_000


class SchemaParts:
    """Reads one schema. `parts` is the whole; raises: `NotASkeleton`."""

    def __init__(self, root: Schema | bool, languages: Languages, depth: int) -> None:
        self.narrowed: dict[str, None] = {}
        self._root: Schema = root if isinstance(root, Mapping) else {}
        self._languages = languages
        self._depth = depth
        self._level = 0
        self._choices: dict[Hashable, Choice] = {}
        self._unread: list[Choice] = []
        self._spent = 0
        self.parts = self.value(root)
        self._read(self.parts)
        # all that may come later is read now: nothing may turn out to be impossible on the way
        while self._unread:
            for way in self._unread.pop().ways:
                self._read(way)

    def value(self, schema: object) -> Parts:
        """A value that fits `schema`. Raises: `NotASkeleton`."""
        self._level += 1
        try:
            if self._level > self._depth:
                raise NotASkeleton(f"values nest deeper than {self._depth}")
            return joined(self._value(self._resolved(checked(schema))))
        finally:
            self._level -= 1

    def choice(
        self,
        key: tuple[object, ...],
        make: Callable[[], Sequence[Parts]],
        *,
        exits: bool = False,
    ) -> Choice:
        """The choice of that key, made once. Raises: `NotASkeleton` when there are too many."""
        if key not in self._choices:
            self._choices[key] = Choice(key, make, exits)
            if len(self._choices) > _MOST_CHOICES:
                raise NotASkeleton(f"it has more than {_MOST_CHOICES} choices")
            self._unread.append(self._choices[key])
        return self._choices[key]

    def narrow(self, note: str) -> None:
        """Something that fits the schema is never written."""
        self.narrowed[note] = None

    def key(self, schema: object) -> str:
        """Equal for equal schemas. Raises: `NotASkeleton` when the schema is too large for it."""
        text = spelled(schema)
        self._spent += len(text)
        if self._spent > _MOST_TEXT:
            raise NotASkeleton("it nests too much text")
        return text

    def _read(self, parts: Parts) -> None:
        for part in parts:
            if isinstance(part, Text):
                self._languages.lexicon.spell(part.text)
            elif isinstance(part, Choice) and not part.read and part.key not in self._choices:
                self._choices[part.key] = part  # made by others
                self._unread.append(part)

    def _resolved(self, schema: Schema) -> Schema:
        """Without `$ref` and `allOf`. Raises: `NotASkeleton`."""
        for _ in range(self._depth):
            if "$ref" in schema:
                target = checked(self._target(schema["$ref"]))
                rest = without(schema, "$ref")
                schema = both(target, rest) if rest else target
            elif "allOf" in schema:
                found: Schema = without(schema, "allOf")
                for part in schema["allOf"]:
                    found = both(found, self._resolved(checked(part)))
                schema = found
            else:
                return schema
        raise NotASkeleton("a reference leads to itself")

    def _target(self, reference: object) -> object:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise NotASkeleton("a reference leads out of the schema")
        found: Any = self._root
        for name in filter(None, reference[1:].split("/")):
            name = name.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and name in found:
                found = found[name]
            elif isinstance(found, list | tuple) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                raise NotASkeleton(f"the reference {reference!r} leads nowhere")
        return found

    def _value(self, schema: Schema) -> Parts:
        if "const" in schema or "enum" in schema:
            return self._listed(schema)
        for name in ("anyOf", "oneOf"):
            if name in schema:
                return self._union(schema, name)
        names = types(schema)
        if len(names) == 1:
            return self._typed(schema, names[0])
        kinds = [self._of_type(schema, name) for name in names or _ANYTHING]
        return self._either(kinds)

    def _of_type(self, schema: Schema, name: str) -> Schema:
        return {"type": name, **{k: v for k, v in schema.items() if k in OF_TYPE[name]}}

    def _typed(self, schema: Schema, name: str) -> Parts:
        match name:
            case "null":
                return (Text("null"),)
            case "boolean":
                return fixed(["true", "false"], self._languages)
            case "integer" | "number":
                return (self._languages.value(number_pattern({**schema, "type": name})),)
            case "string":
                return string_parts(schema, self._languages)
            case "array":
                return Arrays(self, schema).parts()
            case _:
                return Objects(self, schema).parts()

    def _listed(self, schema: Schema) -> Parts:
        values = [schema["const"]] if "const" in schema else list(schema["enum"])
        if "const" in schema and "enum" in schema:
            values = [v for v in values if any(same(v, each) for each in schema["enum"])]
        if "type" in schema:
            values = [v for v in values if has_type(v, types(schema))]
        rest = without(schema, "const", "enum", "type")
        if rest:
            raise NotASkeleton(f"{min(rest)!r} beside listed values")
        if not values:
            raise NotASkeleton("a part of the schema allows nothing")
        return fixed(list(dict.fromkeys(map(spelled, values))), self._languages)

    def _union(self, schema: Schema, name: str) -> Parts:
        rest = without(schema, name)
        if not isinstance(schema[name], list | tuple) or not schema[name]:
            raise NotASkeleton(f"{name!r} without alternatives")
        branches = []
        for one in schema[name]:
            try:
                found = self._resolved(checked(one))
                branches.append(both(rest, found) if rest else found)
            except NotASkeleton:
                if one is not False:
                    raise
        if name == "oneOf" and not disjoint(branches):
            raise NotASkeleton("alternatives of 'oneOf' that may hold at once")
        return self._either(branches)

    def _either(self, branches: Sequence[Schema]) -> Parts:
        """What fits one of `branches`."""
        if len(branches) == 1:
            return self.value(branches[0])
        key = ("either", self.key([dict(branch) for branch in branches]))
        return (self.choice(key, lambda: self._ways(branches, key)),)

    def _ways(self, branches: Sequence[Schema], key: tuple[object, ...]) -> Sequence[Parts]:
        """Numbers, and strings, are one language each where there are several."""
        strings = [one for one in branches if plain_type(one) == "string"]
        numbers = [one for one in branches if plain_type(one) in ("integer", "number")]
        texts = [one for one in branches if strings and listed(one, str)]
        counts = [one for one in branches if numbers and listed(one, float)]
        apart = [*strings, *numbers, *texts, *counts]
        ways = [self.value(one) for one in branches if not any(one is each for each in apart)]
        if strings and len(strings) + len(texts) == 1:
            ways.append(string_parts(strings[0], self._languages))
        elif strings:
            patterns = [*map(string_pattern, strings), *map(listed_strings, texts)]
            value = self._languages.string(Either(tuple(patterns)), 0, None)
            ways.append((Text('"'), value, Text('"')))
        if numbers:
            found = [*map(number_pattern, numbers), *map(listed_numbers, counts)]
            ways.append((self._languages.value(Either(tuple(found))),))
        return factored(ways, key)
