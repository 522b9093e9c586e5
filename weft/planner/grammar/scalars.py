"""Strings and numbers of a schema, as terminals of a grammar."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from weft.planner.grammar.alternatives import Keywords
from weft.planner.grammar.limits import GrammarLimits
from weft.planner.grammar.numbers import NumberRange, integers, numbers, places, rounded, whole
from weft.planner.grammar.rules import GrammarRules, GrammarSymbol, Production, literal, production

Loosened = Callable[[str], None]
"""Receives each keyword that a grammar does not enforce."""

_HEX: Final = "[0-9a-fA-F]"
# Any escape of JSON, except for lone surrogates.
_UNIT: Final = (
    rf"\\u(?:[0-9abcefABCEF]{_HEX}{{3}}|[dD][0-7]{_HEX}{{2}}"
    rf"|[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}})"
)
CHARACTER: Final = rf'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|{_UNIT})'
# The one spelling of a key by `write`, so that no key has two.
KEY_CHARACTER: Final = r'(?:[^"\\\x00-\x1f]|\\["\\bfnrt]|\\u00[01][0-9a-f])'
_FORMATS: Final = frozenset(("duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"))
"""Formats of JSON Schema that llguidance enforces."""

_DATE: Final = r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_TIME: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::(?:[0-5][0-9]|60)(?:\.[0-9]{1,9})?)?"
_ZONE: Final = r"(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9])?"
_MOMENTS: Final = {
    "date": _DATE,
    "time": f"{_TIME}{_ZONE}",
    "date-time": f"{_DATE}[Tt ]{_TIME}{_ZONE}",
}
"""Formats with more spellings than llguidance's own: seconds and zone may be missing."""

_LEAST_FOR_A_PATTERN: Final = 200
# Constructs that are not regular (look-around, back-references), or differ between Python and Rust.
_BEYOND: Final = re.compile(r"\(\?(?!:)|\\[1-9bBAZzGkpP]|[*+?}]\+|\{,|\[\^?[^\]\\]*\[|&&|--|~~")
# Larger bounds are left to the checker.
_FARTHEST: Final = Decimal(10) ** 18
_EXACT: Final = Decimal(2) ** 53
"""Up to here a number that is written with a point is read as the number that is written."""


def string(
    rules: GrammarRules, schema: Keywords, limits: GrammarLimits, loosened: Loosened
) -> GrammarSymbol | None:
    """A string in quotes."""
    pattern, form = _regular(schema.get("pattern"), loosened), schema.get("format")
    described = pattern is not None or form in _FORMATS
    low = int(schema.get("minLength", 0))
    high = max(low, _LEAST_FOR_A_PATTERN if described else 0, limits.chars)
    high = min(high, int(schema.get("maxLength", high)))
    if low > high:
        return None
    if form in _MOMENTS and pattern is None:
        return rules.terminal(f'"{_MOMENTS[str(form)]}"')
    if not described:
        return rules.terminal(f'"{CHARACTER}{{{low},{high}}}"')
    leaf: dict[str, Any] = {"type": "string", "minLength": low, "maxLength": high}
    if pattern is not None:
        leaf["pattern"] = pattern
    if form in _FORMATS:
        leaf["format"] = form
    return GrammarSymbol(f"%json {json.dumps(leaf)}")


def _regular(pattern: Any, loosened: Loosened) -> str | None:
    """The pattern, if it is a regular expression in the narrow sense."""
    if pattern is None:
        return None
    try:
        re.compile(pattern)
    except (re.error, TypeError):
        loosened(f"the 'pattern' {pattern!r}, which is no regular expression")
        return None
    if _BEYOND.search(pattern):
        loosened(f"the 'pattern' {pattern!r}")
        return None
    return str(pattern)


def number(
    rules: GrammarRules, schema: Keywords, limits: GrammarLimits, loosened: Loosened
) -> tuple[Production, ...]:
    """A number in any spelling of JSON."""
    within = _range(schema)
    if (step := _step(schema, loosened)) is None:
        return _terminal(rules, numbers(within, limits.digits, limits.decimals))
    used = places(step)
    if step.scaleb(used) != 1:
        loosened(f"'multipleOf' {schema['multipleOf']!r}")
    if not used:
        return _terminal(rules, whole(within, limits.digits))
    return _terminal(rules, rounded(within, limits.digits, used))


def integer(
    rules: GrammarRules, schema: Keywords, limits: GrammarLimits, loosened: Loosened
) -> tuple[Production, ...]:
    """A whole number. JSON also writes one as `3.0`."""
    within = _range(schema)
    step = _step(schema, loosened)
    if step is None or Decimal(1) % step == 0:
        return _terminal(rules, whole(within, limits.digits))
    # llguidance supports no multiples below 0 or very large ones: those are left to the checker.
    factor = int(step.scaleb(max(0, places(step))))
    multiple = _multiple(factor, within.above_zero, _FARTHEST)
    with_point = _multiple(factor, within.above_zero, _EXACT)
    far = NumberRange(low=_FARTHEST) if within.high is None else None
    below = replace(within, high=Decimal(-1)) if within.high is None or within.high >= 0 else within
    others = [integers(one, limits.digits) for one in (far, below) if one is not None]
    return (
        *production(multiple),
        *production(with_point, literal(".0")),
        *_terminal(rules, "|".join(filter(None, others))),
    )


def _multiple(step: int, within: NumberRange, farthest: Decimal) -> GrammarSymbol | None:
    """Non-negative whole multiples up to `farthest`."""
    assert within.low is not None
    high = farthest if within.high is None else min(within.high, farthest)
    first, last = -(-int(within.low.to_integral_value("ROUND_CEILING")) // step), int(high // step)
    first += within.low_open and first * step == within.low
    last -= within.high_open and last * step == within.high
    if high < 0 or last < first:
        return None
    leaf = {"type": "integer", "multipleOf": step, "minimum": first * step}
    return GrammarSymbol(f"%json {json.dumps({**leaf, 'maximum': last * step})}")


def _step(schema: Keywords, loosened: Loosened) -> Decimal | None:
    """The `multipleOf` of a number."""
    stated = schema.get("multipleOf")
    if stated is None:
        return None
    if isinstance(stated, (int, float)) and Decimal(str(stated)).is_finite() and stated > 0:
        return Decimal(str(stated))
    loosened(f"'multipleOf' {stated!r}")
    return None


def _range(schema: Keywords) -> NumberRange:
    low, low_open = _bound(schema, "inimum", max)
    high, high_open = _bound(schema, "aximum", min)
    return NumberRange(low, high, low_open, high_open)


def _bound(
    schema: Keywords, ending: str, nearest: Callable[..., Decimal]
) -> tuple[Decimal | None, bool]:
    """The tighter bound, and whether it is exclusive."""
    found = {}
    for keyword in (f"exclusiveM{ending}", f"m{ending}"):
        value = schema.get(keyword)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            bound = Decimal(str(value))
            if bound.is_finite() and abs(bound) <= _FARTHEST:
                found[keyword] = bound
    if not found:
        return None, False
    end = nearest(found.values())
    return end, found.get(f"exclusiveM{ending}") == end


def _terminal(rules: GrammarRules, regex: str) -> tuple[Production, ...]:
    return production(rules.terminal(regex)) if regex else ()
