"""What several texts begin with."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

from weft.decoding.diffusion.structure.keywords import (
    OF_TYPE,
    Schema,
    check_keywords,
    disjoint,
    dump_json,
    has_type,
    intersect_schemas,
    lists_values,
    plain_type,
    same_value,
    value_types,
    without_keywords,
)
from weft.decoding.diffusion.structure.languages.errors import NotASkeleton
from weft.decoding.diffusion.structure.languages.pattern import Alternation
from weft.decoding.diffusion.structure.parts import (
    ChoicePart,
    LiteralText,
    Part,
    Parts,
    ValueLanguages,
    join_texts,
)
from weft.decoding.diffusion.structure.values import (
    ArrayCompiler,
    ObjectCompiler,
    listed_numbers,
    listed_strings,
    number_pattern,
    one_of_texts,
    string_parts,
    string_pattern,
)


def common_prefix(texts: Sequence[str]) -> str:
    """The longest text that all of `texts`, one at least, begin with."""
    low, high = min(texts), max(texts)  # all others lie between them, and begin alike
    for at, char in enumerate(low):
        if high[at : at + 1] != char:
            return low[:at]
    return low


def factor_prefixes(ways: Sequence[Parts], key: tuple[object, ...]) -> tuple[Parts, ...]:
    """`ways`, those that begin with the same text put together; words are not cut."""
    groups: dict[str, list[Parts]] = {}
    for number, way in enumerate(ways):
        head = way[0] if way else None
        name = head.text[0] if isinstance(head, LiteralText) else f"\0{number}"
        groups.setdefault(name, []).append(way)
    out: list[Parts] = []
    for name, group in groups.items():
        shared = _shared_text(group) if len(group) > 1 else ""
        out.extend([_join_prefix(group, shared, (*key, name))] if shared else group)
    return tuple(out)


def _shared_text(ways: Sequence[Parts]) -> str:
    """The text that all begin with, up to the last word or number in it."""
    texts = [way[0].text for way in ways if isinstance(way[0], LiteralText)]
    shared = common_prefix(texts)
    while shared and shared[-1].isalnum():
        shared = shared[:-1]
    return shared


def _join_prefix(ways: Sequence[Parts], shared: str, key: tuple[object, ...]) -> Parts:
    """The text that all begin with, then a choice of how they go on."""
    distinct = tuple(dict.fromkeys(_after_prefix(way, len(shared)) for way in ways))
    if len(distinct) == 1:
        return join_texts((LiteralText(shared), *distinct[0]))
    return LiteralText(shared), ChoicePart(key, lambda: factor_prefixes(distinct, key))


def _after_prefix(way: Parts, length: int) -> Parts:
    head = way[0]
    assert isinstance(head, LiteralText)
    rest: tuple[Part, ...] = way[1:]
    return (LiteralText(head.text[length:]), *rest) if len(head.text) > length else rest


_ANYTHING: Final = ("string", "number", "boolean", "null", "array", "object")
_MOST_CHOICES: Final = 3000
_MOST_TEXT: Final = 1_000_000


class SchemaCompiler:
    """Reads one schema. `parts` is the whole; raises: `NotASkeleton`."""

    def __init__(self, root: Schema | bool, languages: ValueLanguages, depth: int) -> None:
        self.narrowed: dict[str, None] = {}
        self._root: Schema = root if isinstance(root, Mapping) else {}
        self._languages = languages
        self._depth = depth
        self._level = 0
        self._choices: dict[Hashable, ChoicePart] = {}
        self._unread: list[ChoicePart] = []
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
            return join_texts(self._value(self._resolved(check_keywords(schema))))
        finally:
            self._level -= 1

    def choice(
        self, key: tuple[object, ...], make: Callable[[], Sequence[Parts]], *, exits: bool = False
    ) -> ChoicePart:
        """The choice of that key, made once. Raises: `NotASkeleton` when there are too many."""
        if key not in self._choices:
            self._choices[key] = ChoicePart(key, make, exits)
            if len(self._choices) > _MOST_CHOICES:
                raise NotASkeleton(f"it has more than {_MOST_CHOICES} choices")
            self._unread.append(self._choices[key])
        return self._choices[key]

    def narrow(self, note: str) -> None:
        """Something that fits the schema is never written."""
        self.narrowed[note] = None

    def key(self, schema: object) -> str:
        """Equal for equal schemas. Raises: `NotASkeleton` when the schema is too large for it."""
        text = dump_json(schema)
        self._spent += len(text)
        if self._spent > _MOST_TEXT:
            raise NotASkeleton("it nests too much text")
        return text

    def _read(self, parts: Parts) -> None:
        for part in parts:
            if isinstance(part, LiteralText):
                self._languages.lexicon.spell(part.text)
            elif isinstance(part, ChoicePart) and not part.read and part.key not in self._choices:
                self._choices[part.key] = part  # made by others
                self._unread.append(part)

    def _resolved(self, schema: Schema) -> Schema:
        """Without `$ref` and `allOf`. Raises: `NotASkeleton`."""
        for _ in range(self._depth):
            if "$ref" in schema:
                target = check_keywords(self._target(schema["$ref"]))
                rest = without_keywords(schema, "$ref")
                schema = intersect_schemas(target, rest) if rest else target
            elif "allOf" in schema:
                found: Schema = without_keywords(schema, "allOf")
                for part in schema["allOf"]:
                    found = intersect_schemas(found, self._resolved(check_keywords(part)))
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
        names = value_types(schema)
        if len(names) == 1:
            return self._typed(schema, names[0])
        kinds = [self._of_type(schema, name) for name in names or _ANYTHING]
        return self._either(kinds)

    def _of_type(self, schema: Schema, name: str) -> Schema:
        return {"type": name, **{k: v for k, v in schema.items() if k in OF_TYPE[name]}}

    def _typed(self, schema: Schema, name: str) -> Parts:
        match name:
            case "null":
                return (LiteralText("null"),)
            case "boolean":
                return one_of_texts(["true", "false"], self._languages)
            case "integer" | "number":
                return (self._languages.value(number_pattern({**schema, "type": name})),)
            case "string":
                return string_parts(schema, self._languages)
            case "array":
                return ArrayCompiler(self, schema).parts()
            case _:
                return ObjectCompiler(self, schema).parts()

    def _listed(self, schema: Schema) -> Parts:
        values = [schema["const"]] if "const" in schema else list(schema["enum"])
        if "const" in schema and "enum" in schema:
            values = [v for v in values if any(same_value(v, each) for each in schema["enum"])]
        if "type" in schema:
            values = [v for v in values if has_type(v, value_types(schema))]
        rest = without_keywords(schema, "const", "enum", "type")
        if rest:
            raise NotASkeleton(f"{min(rest)!r} beside listed values")
        if not values:
            raise NotASkeleton("a part of the schema allows nothing")
        return one_of_texts(list(dict.fromkeys(map(dump_json, values))), self._languages)

    def _union(self, schema: Schema, name: str) -> Parts:
        rest = without_keywords(schema, name)
        if not isinstance(schema[name], list | tuple) or not schema[name]:
            raise NotASkeleton(f"{name!r} without alternatives")
        branches = []
        for one in schema[name]:
            try:
                found = self._resolved(check_keywords(one))
                branches.append(intersect_schemas(rest, found) if rest else found)
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
        texts = [one for one in branches if strings and lists_values(one, str)]
        counts = [one for one in branches if numbers and lists_values(one, float)]
        apart = [*strings, *numbers, *texts, *counts]
        ways = [self.value(one) for one in branches if not any(one is each for each in apart)]
        if strings and len(strings) + len(texts) == 1:
            ways.append(string_parts(strings[0], self._languages))
        elif strings:
            patterns = [*map(string_pattern, strings), *map(listed_strings, texts)]
            value = self._languages.string(Alternation(tuple(patterns)), 0, None)
            ways.append((LiteralText('"'), value, LiteralText('"')))
        if numbers:
            found = [*map(number_pattern, numbers), *map(listed_numbers, counts)]
            ways.append((self._languages.value(Alternation(tuple(found))),))
        return factor_prefixes(ways, key)
