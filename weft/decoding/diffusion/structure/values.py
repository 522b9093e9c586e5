"""The values of a JSON Schema as parts of a skeleton: scalars, fixed texts, arrays and objects."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Any, Final, Protocol

from weft.decoding.diffusion.structure.keywords import Schema, dump_json
from weft.decoding.diffusion.structure.languages.automaton import EVERYTHING
from weft.decoding.diffusion.structure.languages.errors import NotASkeleton
from weft.decoding.diffusion.structure.languages.pattern import (
    FORMATS,
    Alternation,
    CharacterClass,
    NumberBounds,
    NumberPattern,
    Pattern,
    Repetition,
    literal,
    parse_regex,
)
from weft.decoding.diffusion.structure.parts import (
    ChoicePart,
    LiteralText,
    Parts,
    ValueLanguages,
    join_texts,
)

_MOST_MULTIPLES: Final = 1000
_MOST_UNROLLED: Final = 64


def string_parts(schema: Schema, languages: ValueLanguages) -> Parts:
    """A string with its quotes. Raises: `NotASkeleton`."""
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    return (
        LiteralText('"'),
        languages.string(_string_expression(schema), least, most),
        LiteralText('"'),
    )


def string_pattern(schema: Schema) -> Pattern:
    """The content of a string without quotes, as a pattern. Raises: `NotASkeleton`."""
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    described = _string_expression(schema)
    if described is not None and (least or most is not None):
        raise NotASkeleton("alternatives of strings with a pattern and a length")
    if described is not None:
        return described
    if max(least, most or 0) > _MOST_UNROLLED:
        raise NotASkeleton("alternatives of long strings")
    return Repetition(CharacterClass(EVERYTHING), least, most)


def listed_strings(schema: Schema) -> Pattern:
    """The contents of the listed strings."""
    return Alternation(tuple(literal(text) for text in _listed_literals(schema)))


def listed_numbers(schema: Schema) -> Pattern:
    """The listed numbers as JSON."""
    return Alternation(tuple(literal(dump_json(number)) for number in _listed_literals(schema)))


def number_pattern(schema: Schema) -> Pattern:
    """Numbers of the type "integer" or "number". Raises: `NotASkeleton`."""
    whole = schema["type"] in ("integer", ["integer"], ("integer",))
    limits = _limits(schema)
    step = schema.get("multipleOf")
    if step is None or (whole and step == 1):
        return NumberPattern(limits, whole)
    if isinstance(step, bool) or step != int(step) or step < 1:
        raise NotASkeleton("'multipleOf' a fraction")
    return _multiples(int(step), limits)


def _string_expression(schema: Schema) -> Pattern | None:
    """The pattern of `pattern` or `format`; both at once are refused."""
    expression = FORMATS.get(schema.get("format", ""))
    if "pattern" in schema:
        if expression is not None:
            raise NotASkeleton("'pattern' and 'format' for one string")
        expression = schema["pattern"]
    return None if expression is None else parse_regex(expression)


def _multiples(step: int, limits: NumberBounds) -> Pattern:
    """All multiples of `step`. Raises: `NotASkeleton` where they cannot be listed."""
    if limits.least is None or limits.most is None:
        raise NotASkeleton("'multipleOf' without both bounds")
    first, last = ceil(limits.least / step), floor(limits.most / step)
    first += limits.open_least and first * step == limits.least
    last -= limits.open_most and last * step == limits.most
    if not 0 <= last - first < _MOST_MULTIPLES:
        raise NotASkeleton("'multipleOf' with none or too many multiples between the bounds")
    return Alternation(tuple(literal(str(number * step)) for number in range(first, last + 1)))


def _limits(schema: Schema) -> NumberBounds:
    """The tighter of the open and the closed bound on each side."""
    least, open_least = _bound(schema, "minimum", "exclusiveMinimum", 1)
    most, open_most = _bound(schema, "maximum", "exclusiveMaximum", -1)
    return NumberBounds(least, most, open_least, open_most)


def _bound(schema: Schema, closed: str, opened: str, sign: int) -> tuple[Fraction | None, bool]:
    one, other = _fraction(schema.get(closed)), _fraction(schema.get(opened))
    if other is None or (one is not None and sign * one > sign * other):
        return one, False
    return other, True


def _fraction(number: Any) -> Fraction | None:
    """The decimal value: 0.1 is a tenth."""
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise NotASkeleton("a bound that is no number")
    return Fraction(repr(number))


def _listed_literals(schema: Schema) -> list[Any]:
    return [schema["const"]] if "const" in schema else list(schema["enum"])


def one_of_texts(texts: Sequence[str], languages: ValueLanguages) -> Parts:
    """`texts` as a choice, or a language if one is a prefix of another. Raises: `NotASkeleton`."""
    if len(texts) == 1:
        return (LiteralText(texts[0]),)
    if _begins_another(texts):
        return (languages.value(Alternation(tuple(map(literal, texts)))),)
    quote = '"' if all(text[0] == '"' for text in texts) else ""
    cores = [text.removeprefix(quote).removesuffix(quote) for text in texts]
    after = quote
    if not all(cores) or _begins_another(cores):
        after, cores = "", [text.removeprefix(quote) for text in texts]
    choice = ChoicePart(("fixed", *cores), lambda: [(LiteralText(core),) for core in cores])
    return LiteralText(quote), choice, LiteralText(after)


def _begins_another(texts: Sequence[str]) -> bool:
    ordered = sorted(texts)
    return any(b.startswith(a) for a, b in itertools.pairwise(ordered))


class ValueCompiler(Protocol):
    """The compiler of one schema. All methods raise `NotASkeleton`."""

    def value(self, schema: object) -> Parts:
        """A value that fits `schema`."""

    def choice(
        self, key: tuple[object, ...], make: Callable[[], Sequence[Parts]], *, exits: bool = False
    ) -> ChoicePart:
        """The choice of that key, created once."""

    def narrow(self, note: str) -> None:
        """Note values that fit the schema but are never written."""

    def key(self, schema: object) -> str:
        """A key that is equal for equal schemas."""


class EntryList:
    """At most `most` entries: `entry` makes the one of an index, all equal from `distinct` on.

    `key` identifies equal lists.
    """

    def __init__(
        self,
        compiling: ValueCompiler,
        key: tuple[object, ...],
        entry: Callable[[int], Parts],
        most: int | None,
        distinct: int = 0,
    ) -> None:
        self._compiling = compiling
        self._key = key
        self._entry = entry
        self._most = most
        self._distinct = distinct

    def parts(self, least: int) -> Parts:
        """At least `least` entries. Raises: `NotASkeleton` if that is more than `most`."""
        if self._most is not None and least > self._most:
            raise NotASkeleton("at least more entries than at most")
        parts: Parts = ()
        for number in range(least):
            parts = (*parts, *((LiteralText(", "),) if number else ()), *self._entry(number))
        return (*parts, self._more(least)) if self._most is None or least < self._most else parts

    def _more(self, count: int) -> ChoicePart:
        """A choice between the end and one more entry."""
        key = (*self._key, count)
        if count > self._distinct + 1:  # its entries have been read at smaller counts
            return ChoicePart(key, lambda: self._branches(count), exits=True, read=True)
        return self._compiling.choice(key, lambda: self._branches(count), exits=True)

    def _branches(self, count: int) -> Sequence[Parts]:
        if count == self._most:
            return [()]
        after = count if self._most is None and count > self._distinct + 1 else count + 1
        comma = (LiteralText(", "),) if count else ()
        return [(), join_texts((*comma, *self._entry(count), self._more(after)))]


_MOST_LAID_OUT: Final = 1000


class ArrayCompiler:
    """Compiles the schema of an array."""

    def __init__(self, compiling: ValueCompiler, schema: Schema) -> None:
        self._compiling = compiling
        self._first = list(schema.get("prefixItems", ()))
        self._rest = schema.get("items", True)
        if isinstance(self._rest, list | tuple):
            raise NotASkeleton("'items' as a list, which is 'prefixItems' now,")
        self._least = schema.get("minItems", 0)
        self._most: int | None = schema.get("maxItems")
        if self._rest is False:
            longest = len(self._first)
            self._most = longest if self._most is None else min(self._most, longest)
        if schema.get("uniqueItems") and (self._most is None or self._most > 1):
            raise NotASkeleton("'uniqueItems' cannot be laid out")
        if self._least > _MOST_LAID_OUT:
            raise NotASkeleton(f"an array of at least {self._least} items")

    def parts(self) -> Parts:
        """Raises: `NotASkeleton`."""
        key = self._compiling.key([self._first, self._rest, self._most])
        items = EntryList(self._compiling, ("items", key), self._item, self._most, len(self._first))
        return join_texts((LiteralText("["), *items.parts(self._least), LiteralText("]")))

    def _item(self, number: int) -> Parts:
        listed = number < len(self._first)
        return self._compiling.value(self._first[number] if listed else self._rest)


_Property = tuple[str, object]
_KEY: Final = {"type": "string"}


class ObjectCompiler:
    """Compiles the schema of an object. A property is its name and its schema."""

    def __init__(self, compiling: ValueCompiler, schema: Schema) -> None:
        self._compiling = compiling
        declared: dict[str, Any] = dict(schema.get("properties", {}))
        required = list(dict.fromkeys(schema.get("required", ())))
        self._others = schema.get("additionalProperties", True)
        for name in required:
            declared.setdefault(name, self._others)
        least, most = schema.get("minProperties", 0), schema.get("maxProperties")
        if not declared and self._others is not False:
            self._map = True
        else:
            self._map = False
            _check_counts(least, most, len(required), len(declared))
            if most is not None and most < len(declared):
                declared = {name: declared[name] for name in required}
                compiling.narrow("optional properties, where the number of properties is limited")
            if self._others is not False:
                compiling.narrow("properties that are not declared")
        self._declared = [item for item in declared.items() if item[1] is not False]
        if len(self._declared) < len(declared) and not set(required) <= dict(self._declared).keys():
            raise NotASkeleton("a required property allows nothing")
        self._required = frozenset(required)
        self._least, self._most = least, most

    def parts(self) -> Parts:
        """Raises: `NotASkeleton`."""
        if self._map:
            return self._entries()
        first = next((n for n, one in enumerate(self._declared) if self._is_required(one)), None)
        if first is None:
            return LiteralText("{"), *self._choices(self._declared, ("", ", ")), LiteralText("}")
        before = self._choices(self._declared[:first], ("", ""), after=", ")
        parts: Parts = (LiteralText("{"), *before, *self._member(self._declared[first]))
        run: list[_Property] = []
        for one in self._declared[first + 1 :]:
            if self._is_required(one):
                parts = (
                    *parts,
                    *self._choices(run, (", ", ", ")),
                    LiteralText(", "),
                    *self._member(one),
                )
                run = []
            else:
                run.append(one)
        return (*parts, *self._choices(run, (", ", ", ")), LiteralText("}"))

    def _is_required(self, one: _Property) -> bool:
        return one[0] in self._required

    def _member(self, one: _Property) -> Parts:
        return LiteralText(f"{dump_json(one[0])}: "), *self._compiling.value(one[1])

    def _choices(self, run: Sequence[_Property], before: tuple[str, str], after: str = "") -> Parts:
        """Any of `run`, in order: `before` (the first, later ones) and `after` surround each."""
        if not run:
            return ()
        left = tuple(run)
        key = ("optional", self._compiling.key([list(one) for one in left]), before, after)
        made = self._compiling.choice(key, lambda: self._branches(left, before, after), exits=True)
        return (made,)

    def _branches(
        self, run: tuple[_Property, ...], before: tuple[str, str], after: str
    ) -> Sequence[Parts]:
        """None of them, or one and then any later ones."""
        later = (before[1], before[1])
        branches: list[Parts] = [()]
        for number, one in enumerate(run):
            rest = self._choices(run[number + 1 :], later, after)
            text = (LiteralText(after),) if after else ()
            branch = (LiteralText(before[0]), *self._member(one), *text, *rest)
            branches.append(join_texts(branch))
        return branches

    def _entries(self) -> Parts:
        """A map from strings to values of one schema."""
        if self._least > 1:
            raise NotASkeleton("'minProperties' of an object whose properties have no names")
        entries = EntryList(
            self._compiling,
            ("entries", self._compiling.key([self._others, self._most])),
            lambda _: self._entry(),
            self._most,
        )
        return LiteralText("{"), *entries.parts(self._least), LiteralText("}")

    def _entry(self) -> Parts:
        return *self._compiling.value(_KEY), LiteralText(": "), *self._compiling.value(self._others)


def _check_counts(least: int, most: int | None, required: int, declared: int) -> None:
    """Raises: `NotASkeleton` where counts would depend on which optional ones are present."""
    if least > required:
        raise NotASkeleton("'minProperties' above the number of required properties")
    if most is not None and most < declared and most != required:
        raise NotASkeleton("'maxProperties' between the required and the declared ones")
