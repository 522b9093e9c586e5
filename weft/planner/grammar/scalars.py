"""Strings and numbers that fit a schema, as terminals of a grammar.

Knows JSON's spelling and single keywords; knows no references.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from weft.planner.grammar.conjunction import CannotHold, Keywords
from weft.planner.grammar.limits import GrammarLimits
from weft.planner.grammar.numbers import PLACES, decimals, fractions, integers
from weft.planner.grammar.rules import Rules, Symbol

# Escapes of single code units are left out: half a character could be written with them.
CHARACTER: Final = r'([^"\\\x00-\x1f\x7f]|\\["\\/bfnrt])'
# Of the formats that JSON Schema names, those that llguidance can hold a string to.
_FORMATS: Final = frozenset(
    ("date", "date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri")
)
_LEAST_FOR_A_PATTERN: Final = 200
# What is not regular (look-around, references back), or is not the same in Python and in Rust.
_BEYOND: Final = re.compile(r"\(\?(?!:)|\\[1-9bBAZzGkpP]|[*+?}]\+|\{,|\[\^?[^\]\\]*\[|&&|--|~~")
# Bounds further out than that are none: what is computed here has 28 digits.
_FARTHEST: Final = Decimal(10) ** 20


def string(rules: Rules, schema: Keywords, limits: GrammarLimits) -> Symbol | None:
    """Raises: `CannotHold` for a pattern beyond regular expressions."""
    pattern, form = schema.get("pattern"), schema.get("format")
    described = pattern is not None or form in _FORMATS
    low = int(schema.get("minLength", 0))
    high = max(low, _LEAST_FOR_A_PATTERN if described else 0, limits.chars)
    high = min(high, int(schema.get("maxLength", high)))
    if low > high:
        return None
    if not described:
        return rules.terminal(f'"{CHARACTER}{{{low},{high}}}"')
    leaf: dict[str, Any] = {"type": "string", "minLength": low, "maxLength": high}
    if pattern is not None:
        leaf["pattern"] = _regular(pattern)
    if form in _FORMATS:
        leaf["format"] = form
    return Symbol(f"%json {json.dumps(leaf)}")


def _regular(pattern: Any) -> str:
    try:
        re.compile(pattern)
    except (re.error, TypeError):
        raise CannotHold(f"the 'pattern' {pattern!r}, which is no regular expression") from None
    if _BEYOND.search(pattern):
        raise CannotHold(f"the 'pattern' {pattern!r}")
    return str(pattern)


def number(rules: Rules, schema: Keywords, limits: GrammarLimits) -> Symbol | None:
    """A number, without exponent. Exact up to bounds that exclude their own value, where a margin
    of a hundredth, or of a millionth where that is needed, is left out too.
    """
    if "multipleOf" in schema:
        return _multiple(rules, schema, limits)
    low, high = _range(schema, limits)
    open_ended = "exclusiveMinimum" in schema or "exclusiveMaximum" in schema
    if not open_ended and low == low.to_integral_value() and high == high.to_integral_value():
        return _terminal(rules, fractions(low, high))
    for places in range(max(2, _places(low), _places(high)), PLACES + 1):
        margin = Decimal(1).scaleb(-places)
        narrow = _narrowed(schema, low, high, margin)
        if regex := decimals(*narrow, places):
            return _terminal(rules, regex)
    return None


def integer(rules: Rules, schema: Keywords, limits: GrammarLimits) -> Symbol | None:
    """A whole number, written without a point."""
    if "multipleOf" in schema:
        return _multiple(rules, {**schema, "type": "integer"}, limits)
    low, high = _narrowed(schema, *_range(schema, limits), Decimal(1))
    return _terminal(rules, integers(low, high))


def _multiple(rules: Rules, schema: Keywords, limits: GrammarLimits) -> Symbol | None:
    """Whole multiples; where a fraction is asked for, those of its multiples that are whole."""
    step = Decimal(str(schema["multipleOf"]))
    if step <= 0 or not step.is_finite():
        raise CannotHold(f"'multipleOf' {schema['multipleOf']!r}")
    whole = int(step * 10 ** max(0, _places(step)))
    if Decimal(1) % step == 0:
        whole = 1
    low, high = _narrowed(schema, *_range(schema, limits), Decimal(1))
    first, last = -(-int(low.to_integral_value("ROUND_CEILING")) // whole), int(high // whole)
    if whole == 1:
        return _terminal(rules, integers(low, high))
    if first > last:
        return None
    if last < 0:
        raise CannotHold("'multipleOf' with negative numbers only")
    leaf = {"type": "integer", "multipleOf": whole, "minimum": first * whole}
    return Symbol(f"%json {json.dumps({**leaf, 'maximum': last * whole})}")


def _range(schema: Keywords, limits: GrammarLimits) -> tuple[Decimal, Decimal]:
    """What the bounds leave; where there is none, as far as the digits go."""
    most = Decimal(10) ** limits.digits
    lows, highs = list(_bounds(schema, "inimum")), list(_bounds(schema, "aximum"))
    low = max(lows) if lows else min(-most, *(10 * high for high in highs), Decimal(0))
    high = min(highs) if highs else max(most, *(10 * one for one in lows), Decimal(0))
    return low, high


def _bounds(schema: Keywords, ending: str) -> Iterator[Decimal]:
    for keyword in (f"m{ending}", f"exclusiveM{ending}"):
        value = schema.get(keyword)
        if isinstance(value, (int, float)) and abs(value) <= _FARTHEST:
            yield Decimal(str(value))


def _narrowed(
    schema: Keywords, low: Decimal, high: Decimal, margin: Decimal
) -> tuple[Decimal, Decimal]:
    """The range without the bounds that exclude themselves."""
    if low == schema.get("exclusiveMinimum") and low % margin == 0:
        low += margin
    if high == schema.get("exclusiveMaximum") and high % margin == 0:
        high -= margin
    return low, high


def _places(value: Decimal) -> int:
    """How many digits stand behind the point."""
    exponent = value.normalize().as_tuple().exponent
    return -exponent if isinstance(exponent, int) and exponent < 0 else 0


def _terminal(rules: Rules, regex: str) -> Symbol | None:
    return rules.terminal(regex) if regex else None
