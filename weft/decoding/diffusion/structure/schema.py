"""Compiles a JSON Schema into parts of a skeleton: references, unions, shared prefixes."""

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
    """The longest common prefix of `texts`, at least one."""
    low, high = min(texts), max(texts)  # all others lie between them, and share their prefix
    for at, char in enumerate(low):
        if high[at : at + 1] != char:
            return low[:at]
    return low


def factor_prefixes(branches: Sequence[Parts], key: tuple[object, ...]) -> tuple[Parts, ...]:
    """`branches`, with those that begin with the same text merged; words are not cut."""
    groups: dict[str, list[Parts]] = {}
    for number, branch in enumerate(branches):
        head = branch[0] if branch else None
        name = head.text[0] if isinstance(head, LiteralText) else f"\0{number}"
        groups.setdefault(name, []).append(branch)
    out: list[Parts] = []
    for name, group in groups.items():
        shared = _shared_text(group) if len(group) > 1 else ""
        out.extend([_join_prefix(group, shared, (*key, name))] if shared else group)
    return tuple(out)


def _shared_text(branches: Sequence[Parts]) -> str:
    """The common prefix, up to the last word or number in it."""
    texts = [branch[0].text for branch in branches if isinstance(branch[0], LiteralText)]
    shared = common_prefix(texts)
    while shared and shared[-1].isalnum():
        shared = shared[:-1]
    return shared


def _join_prefix(branches: Sequence[Parts], shared: str, key: tuple[object, ...]) -> Parts:
    """The shared prefix, then a choice of the continuations."""
    distinct = tuple(dict.fromkeys(_after_prefix(branch, len(shared)) for branch in branches))
    if len(distinct) == 1:
        return join_texts((LiteralText(shared), *distinct[0]))
    return LiteralText(shared), ChoicePart(key, lambda: factor_prefixes(distinct, key))


def _after_prefix(branch: Parts, length: int) -> Parts:
    head = branch[0]
    assert isinstance(head, LiteralText)
    rest: tuple[Part, ...] = branch[1:]
    return (LiteralText(head.text[length:]), *rest) if len(head.text) > length else rest


_ANYTHING: Final = ("string", "number", "boolean", "null", "array", "object")
_MOST_CHOICES: Final = 3000
_MOST_TEXT: Final = 1_000_000


class SchemaCompiler:
    """Compiles one schema; `parts` is the result. Raises: `NotASkeleton`."""

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
        # compile all branches now, so that nothing proves impossible while text is written
        while self._unread:
            for branch in self._unread.pop().branches:
                self._read(branch)

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
        """The choice of that key, created once. Raises: `NotASkeleton` when there are too many."""
        if key not in self._choices:
            self._choices[key] = ChoicePart(key, make, exits)
            if len(self._choices) > _MOST_CHOICES:
                raise NotASkeleton(f"it has more than {_MOST_CHOICES} choices")
            self._unread.append(self._choices[key])
        return self._choices[key]

    def narrow(self, note: str) -> None:
        """Note values that fit the schema but are never written."""
        self.narrowed[note] = None

    def key(self, schema: object) -> str:
        """A key that is equal for equal schemas. Raises: `NotASkeleton`."""
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
                self._choices[part.key] = part  # created elsewhere
                self._unread.append(part)

    def _resolved(self, schema: Schema) -> Schema:
        """The schema without `$ref` and `allOf`. Raises: `NotASkeleton`."""
        for _ in range(self._depth):
            if "$ref" in schema:
                target = check_keywords(self._target(schema["$ref"]))
                rest = without_keywords(schema, "$ref")
                schema = intersect_schemas(target, rest) if rest else target
            elif "allOf" in schema:
                merged: Schema = without_keywords(schema, "allOf")
                for part in schema["allOf"]:
                    merged = intersect_schemas(merged, self._resolved(check_keywords(part)))
                schema = merged
            else:
                return schema
        raise NotASkeleton("a reference leads to itself")

    def _target(self, reference: object) -> object:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise NotASkeleton("a reference leads out of the schema")
        target: Any = self._root
        for name in filter(None, reference[1:].split("/")):
            name = name.replace("~1", "/").replace("~0", "~")
            if isinstance(target, Mapping) and name in target:
                target = target[name]
            elif isinstance(target, list | tuple) and name.isdecimal() and int(name) < len(target):
                target = target[int(name)]
            else:
                raise NotASkeleton(f"the reference {reference!r} leads nowhere")
        return target

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
        return self._one_of(kinds)

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
                branch = self._resolved(check_keywords(one))
                branches.append(intersect_schemas(rest, branch) if rest else branch)
            except NotASkeleton:
                if one is not False:
                    raise
        if name == "oneOf" and not disjoint(branches):
            raise NotASkeleton("alternatives of 'oneOf' that may hold at once")
        return self._one_of(branches)

    def _one_of(self, branches: Sequence[Schema]) -> Parts:
        """A value that fits one of `branches`."""
        if len(branches) == 1:
            return self.value(branches[0])
        key = ("either", self.key([dict(branch) for branch in branches]))
        return (self.choice(key, lambda: self._branches(branches, key)),)

    def _branches(self, branches: Sequence[Schema], key: tuple[object, ...]) -> Sequence[Parts]:
        """Parts of the branches; several of numbers or of strings become one language."""
        strings = [one for one in branches if plain_type(one) == "string"]
        numbers = [one for one in branches if plain_type(one) in ("integer", "number")]
        texts = [one for one in branches if strings and lists_values(one, str)]
        counts = [one for one in branches if numbers and lists_values(one, float)]
        apart = [*strings, *numbers, *texts, *counts]
        out = [self.value(one) for one in branches if not any(one is each for each in apart)]
        if strings and len(strings) + len(texts) == 1:
            out.append(string_parts(strings[0], self._languages))
        elif strings:
            patterns = [*map(string_pattern, strings), *map(listed_strings, texts)]
            value = self._languages.string(Alternation(tuple(patterns)), 0, None)
            out.append((LiteralText('"'), value, LiteralText('"')))
        if numbers:
            alternatives = [*map(number_pattern, numbers), *map(listed_numbers, counts)]
            out.append((self._languages.value(Alternation(tuple(alternatives))),))
        return factor_prefixes(out, key)
