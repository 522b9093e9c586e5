"""Hostile text becomes harmless; numbers become readable."""

from __future__ import annotations

import sys
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.hostile import ALL, FORBIDDEN, MARKUP
from weft.cli.text import amount, clean, duration, last_line, listing, one_line

# Of category Cf and yet visible: signs of numbers and verses, controls of hieroglyphs.
SIGNS = (
    *range(0x600, 0x606),
    *(0x6DD, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD),
    *range(0x13430, 0x13440),
)


def test_sequences_go_and_words_stay() -> None:
    assert clean("\x1b[31mred\x1b[0m, \x1b]8;;http://evil\x07link\x1b]8;;\x07.") == "red, link."
    assert not set(clean(ALL)) & set(FORBIDDEN)
    assert clean(MARKUP) == MARKUP


@given(st.text(st.characters(codec=None)))
def test_nothing_that_controls_a_terminal_is_left(text: str) -> None:
    cleaned = clean(text)
    assert all(c in "\n\t" or (c >= " " and not "\x7f" <= c <= "\x9f") for c in cleaned)
    assert clean(cleaned) == cleaned
    cleaned.encode()


def test_of_the_characters_that_show_nothing_only_joiners_are_left() -> None:
    shown = {"\u200c", "\u200d"} | {chr(sign) for sign in SIGNS}
    hidden = {c for c in map(chr, range(sys.maxunicode + 1)) if category(c) in ("Cf", "Zl", "Zp")}
    assert set(clean("".join(sorted(hidden)))) == shown & hidden  # Unicode goes on growing


def test_an_unfinished_sequence_does_not_swallow_what_follows() -> None:
    assert clean("a\x1b]0;" + "b" * 10_000) == "a0;" + "b" * 10_000


def test_a_megabyte_is_one_short_line() -> None:
    assert one_line("word \n" * 200_000, 20) == "word word word word…"
    assert last_line("word \n" * 200_000, 20) == "…word word word word"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ms"),
        (0.0124, "12 ms"),
        (0.9999, "1.00 s"),
        (59.9, "59.90 s"),
        (59.999, "1 min 00 s"),
        (125, "2 min 05 s"),
        (3725, "1 h 02 min"),
    ],
)
def test_durations_read_well(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_counts_and_lists_read_well() -> None:
    assert (amount(1, "node"), amount(1200, "node")) == ("1 node", "1,200 nodes")
    assert listing("abcdefg", 5) == "a, b, c, d, e and 2 more"
