"""Strings and numbers as languages. Knows the keywords of single schemas, no references."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from typing import Any, Final

from weft.decoding.diffusion.structure.charset import EVERYTHING
from weft.decoding.diffusion.structure.formats import FORMATS
from weft.decoding.diffusion.structure.keywords import Schema, spelled
from weft.decoding.diffusion.structure.languages import Languages
from weft.decoding.diffusion.structure.numbers import Limits, Numbers
from weft.decoding.diffusion.structure.parts import Parts, Text
from weft.decoding.diffusion.structure.pattern import Chars, Either, Pattern, Repeat, literal
from weft.decoding.diffusion.structure.refused import NotASkeleton
from weft.decoding.diffusion.structure.regex import searched

_MOST_MULTIPLES: Final = 1000
_MOST_UNROLLED: Final = 64


def string_parts(schema: Schema, languages: Languages) -> Parts:
    """A string with its quotes. Raises: `NotASkeleton`."""
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    return Text('"'), languages.string(_described(schema), least, most), Text('"')


def string_pattern(schema: Schema) -> Pattern:
    """What stands between the quotes, without counting. Raises: `NotASkeleton`."""
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    described = _described(schema)
    if described is not None and (least or most is not None):
        raise NotASkeleton("alternatives of strings with a pattern and a length")
    if described is not None:
        return described
    if max(least, most or 0) > _MOST_UNROLLED:
        raise NotASkeleton("alternatives of long strings")
    return Repeat(Chars(EVERYTHING), least, most)


def listed_strings(schema: Schema) -> Pattern:
    """What the listed strings hold."""
    return Either(tuple(literal(text) for text in _values(schema)))


def listed_numbers(schema: Schema) -> Pattern:
    """The listed numbers as they are written."""
    return Either(tuple(literal(spelled(number)) for number in _values(schema)))


def number_pattern(schema: Schema) -> Pattern:
    """Of the type "integer" or "number". Raises: `NotASkeleton`."""
    whole = schema["type"] in ("integer", ["integer"], ("integer",))
    limits = _limits(schema)
    step = schema.get("multipleOf")
    if step is None or (whole and step == 1):
        return Numbers(limits, whole)
    if isinstance(step, bool) or step != int(step) or step < 1:
        raise NotASkeleton("'multipleOf' a fraction")
    return _multiples(int(step), limits)


def _described(schema: Schema) -> Pattern | None:
    """What `pattern` or `format` says; both at once are refused."""
    expression = FORMATS.get(schema.get("format", ""))
    if "pattern" in schema:
        if expression is not None:
            raise NotASkeleton("'pattern' and 'format' for one string")
        expression = schema["pattern"]
    return None if expression is None else searched(expression)


def _multiples(step: int, limits: Limits) -> Pattern:
    """Raises: `NotASkeleton` where they cannot be listed."""
    if limits.least is None or limits.most is None:
        raise NotASkeleton("'multipleOf' without both bounds")
    first, last = ceil(limits.least / step), floor(limits.most / step)
    first += limits.open_least and first * step == limits.least
    last -= limits.open_most and last * step == limits.most
    if not 0 <= last - first < _MOST_MULTIPLES:
        raise NotASkeleton("'multipleOf' with none or too many multiples between the bounds")
    return Either(tuple(literal(str(number * step)) for number in range(first, last + 1)))


def _limits(schema: Schema) -> Limits:
    """The tighter of the open and the closed bound on each side."""
    least, open_least = _bound(schema, "minimum", "exclusiveMinimum", 1)
    most, open_most = _bound(schema, "maximum", "exclusiveMaximum", -1)
    return Limits(least, most, open_least, open_most)


def _bound(schema: Schema, closed: str, opened: str, sign: int) -> tuple[Fraction | None, bool]:
    one, other = _fraction(schema.get(closed)), _fraction(schema.get(opened))
    if other is None or (one is not None and sign * one > sign * other):
        return one, False
    return other, True


def _fraction(number: Any) -> Fraction | None:
    """As it is written: 0.1 is a tenth."""
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise NotASkeleton("a bound that is no number")
    return Fraction(repr(number))


def _values(schema: Schema) -> list[Any]:
    return [schema["const"]] if "const" in schema else list(schema["enum"])
