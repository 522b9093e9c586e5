from __future__ import annotations

import json
import random
import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.decoding.diffusion.structure.languages.automaton import (
    EVERYTHING,
    complement,
    json_string_ranges,
    merge_ranges,
    utf8_ranges,
)
from weft.decoding.diffusion.structure.languages.errors import NotASkeleton
from weft.decoding.diffusion.structure.languages.pattern import (
    FORMATS,
    CharacterClass,
    NumberBounds,
    NumberPattern,
    Repetition,
    compile_pattern,
    parse_regex,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
CODES = st.integers(0, 0x10FFFF)


@given(st.lists(st.tuples(CODES, CODES).map(sorted).map(tuple), max_size=3), CODES)
def test_ranges_of_characters_are_their_bytes(ranges: list[tuple[int, int]], code: int) -> None:
    if 0xD800 <= code <= 0xDFFF:
        return
    kept = merge_ranges(ranges)
    inside = any(low <= code <= high for low, high in ranges)
    spelt = chr(code).encode()
    assert inside == _spells(list(utf8_ranges(kept)), spelt)
    assert inside != any(low <= code <= high for low, high in complement(kept))
    escaped = json.dumps(chr(code), ensure_ascii=False)[1:-1].encode()
    short = code >= 32 or code in (8, 9, 10, 12, 13)
    assert (inside and short) == _spells(list(json_string_ranges(kept)), escaped)


def _spells(paths: list[tuple[tuple[int, int], ...]], text: bytes) -> bool:
    return any(
        len(path) == len(text)
        and all(low <= b <= high for (low, high), b in zip(path, text, strict=True))
        for path in paths
    )


@given(TEXT, st.integers(0, 3), st.integers(0, 4))
def test_a_string_counts_characters_and_not_bytes(text: str, least: int, more: int) -> None:
    made = compile_pattern(Repetition(CharacterClass(EVERYTHING)), in_string=True).counting(
        least, least + more
    )
    spelt = json.dumps(text, ensure_ascii=False)[1:-1]
    if "\\u" not in spelt:
        assert made.reads(spelt.encode()) == (least <= len(text) <= least + more)


PATTERNS = [
    "^[a-c]{2,3}$",
    "^(ab|c)+$",
    "[0-9]",
    "^a|b$",
    "^[^ab]c?$",
    r"^\d+(\.\d+)?$",
    r"a\.b",
    "^(?:a?b){1,2}$",
    r"^[\w-]+$",
    "^.?$",
    "^$",
    "",
    "^a*?b$",
    r"^[^\d]$",
    r"^\x61\u0062$",
    "^[]a]+$",
    "^[a-]+$",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_are_read_as_they_are_searched(pattern: str) -> None:
    made = compile_pattern(parse_regex(pattern))
    alphabet = "abc.01 -]\n\u00e9"
    chance = random.Random(0)
    texts = {"".join(chance.choices(alphabet, k=n)) for n in (0, 1, 2, 3, 4) for _ in range(60)}
    texts |= {"xa.b", "ab", "abab", "cab"}
    found = 0
    for text in sorted(texts):
        if made.reads(text.encode()):
            found += 1
            assert re.search(pattern, text), text
        elif text.isascii() and not text.endswith("\n"):
            assert not re.search(pattern, text), text
    assert found


@pytest.mark.parametrize(
    "pattern",
    [r"(a)\1", "(?=a)", r"\bword", "a{2000}", "[", "(", "a**", r"\p{L}", "(?i)a", "a{3,1}", "x^"],
)
def test_what_is_no_regular_language_is_refused(pattern: str) -> None:
    with pytest.raises(NotASkeleton):
        compile_pattern(parse_regex(pattern))


def test_formats_describe_their_kind() -> None:
    good = {
        "date": "2024-02-28",
        "time": "23:59:59Z",
        "date-time": "2024-12-31T00:00:00.5+01:00",
        "uuid": "123e4567-e89b-12d3-a456-426614174000",
        "email": "a.b@example.org",
        "ipv4": "192.168.0.255",
        "hostname": "a-b.example",
    }
    bad = {"date": "2024-02-30", "time": "24:00:00Z", "ipv4": "1.2.3.256", "email": "a@b"}
    assert good.keys() == FORMATS.keys()
    for name, text in good.items():
        assert compile_pattern(parse_regex(FORMATS[name])).reads(text.encode())
    for name, text in bad.items():
        assert not compile_pattern(parse_regex(FORMATS[name])).reads(text.encode())


BOUND = st.one_of(st.none(), st.integers(-150, 150), st.sampled_from([-0.25, 0.1, 0.75, 1.5]))


@settings(deadline=None, max_examples=80)
@given(BOUND, BOUND, st.booleans(), st.booleans(), st.booleans(), st.integers(0, 2**32))
def test_numbers_lie_between_their_bounds(
    least: float | None,
    most: float | None,
    open_least: bool,
    open_most: bool,
    whole: bool,
    seed: int,
) -> None:
    low = None if least is None else Fraction(repr(least))
    high = None if most is None else Fraction(repr(most))
    chance = random.Random(seed)
    near = [number for number in (low, high, Fraction(0)) if number is not None]

    def fits(number: Fraction) -> bool:
        return (low is None or number > low or (number == low and not open_least)) and (
            high is None or number < high or (number == high and not open_most)
        )

    try:
        made = compile_pattern(NumberPattern(NumberBounds(low, high, open_least, open_most), whole))
    except NotASkeleton:
        assert low is not None
        assert high is not None
        step = 1 if whole else Fraction(1, 10**6)
        assert not any(fits(Fraction(-(-bound // step)) * step) for bound in (low, high))
        return
    for _ in range(60):
        places = 0 if whole else chance.choice([0, 1, 2, 6])
        number = chance.choice(near) + Fraction(chance.randint(-300, 300), 10**places)
        if number.denominator != 1 and (whole or (number * 10**6).denominator != 1):
            continue
        text = _decimal(number)
        assert made.reads(text.encode()) == fits(number), text
    for text in ("-0", "00", "01", "1.", ".5", "+1", "1e3", "", "-"):
        assert not made.reads(text.encode())


def _decimal(number: Fraction) -> str:
    if number.denominator == 1:
        return str(int(number))
    return f"{float(number):.6f}".rstrip("0")
