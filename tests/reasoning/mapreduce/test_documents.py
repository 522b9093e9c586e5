"""The pure parts of map-reduce: cutting, quoting, reading notes, weighing, checking markers."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from weft.reasoning.evidence import Evidence, check_markers, without_markers
from weft.reasoning.mapreduce.note import UNSURE, Note, fitting_groups, read_note, surest, weigh
from weft.reasoning.mapreduce.parts import (
    MOST_SOURCES,
    DocumentPart,
    locate,
    looked_up,
    merged,
    numbered,
    split,
)
from weft.reasoning.question import Document

TEXTS = st.text(st.sampled_from("ab .\n!\u3002\u0301\u200d\U0001f469é1"), max_size=300)


def cut(text: str, limit: int, chars_per_token: float = 1.0) -> list[str]:
    measured: list[str] = []

    async def measure(piece: str) -> int:
        measured.append(piece)
        return -int(-len(piece) // chars_per_token)

    spans = asyncio.run(split(text, limit, measure))
    assert len(measured) <= 60 * (len(spans) + 1)
    return [text[start:end] for start, end in spans]


@examples(200)
@given(TEXTS, st.integers(1, 50), st.sampled_from([0.3, 1.0, 4.0, 9.0]))
def test_the_parts_are_the_text_and_none_is_too_long(text: str, limit: int, rate: float) -> None:
    parts = cut(text, limit, rate)
    assert "".join(parts) == text
    assert all(parts)
    assert all(-int(-len(part) // rate) <= limit or len(part) == 1 for part in parts)


@examples(50)
@given(TEXTS, st.integers(2, 30))
def test_a_tokenizer_without_any_rule_does_not_break_it(text: str, limit: int) -> None:
    async def measure(piece: str) -> int:
        return 1 + hash(piece) % (2 * len(piece))

    spans = asyncio.run(split(text, limit, measure))
    assert "".join(text[start:end] for start, end in spans) == text


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("one two.\n\nthree four. five six", "one two.\n\n"),
        ("one two three\nfour. five six seven", "one two three\n"),
        ("one two three. four five six seven", "one two three. "),
        ("eins zwei drei vier fuenf sechs", "eins zwei drei "),
        (
            "\u4f60\u597d\u4e16\u754c\u4f60\u597d\u4e16\u754c\u3002\u4f60\u597d\u4e16\u754c\u4f60\u597d\u4e16\u754c\u4f60\u597d",
            "\u4f60\u597d\u4e16\u754c\u4f60\u597d\u4e16\u754c\u3002",
        ),
        ("a" * 30, "a" * 17),
    ],
)
def test_cuts_are_where_a_reader_would_cut(text: str, first: str) -> None:
    assert cut(text, 18)[0] == first


def test_a_character_written_as_several_stays_whole() -> None:
    family = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
    assert cut("abc" + family, 6) == ["abc", family]
    assert cut("e\u0301" * 4, 3) == ["e\u0301"] * 4


TEXT = "The  Bridge\nopened on 4 May \u201c1931\u201d. Stra\u00dfe."


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("opened on 4 May", "opened on 4 May"),
        ('"the bridge opened on..."', "The  Bridge\nopened on"),
        ("may '1931'", None),
        ('may "1931"', "May \u201c1931"),
        ("STRASSE", "Stra\u00dfe"),
        ("opened on 5 May", None),
        ("on", None),
        ("", None),
        ("   ...  ", None),
    ],
)
def test_quotes_are_found_however_they_are_spelt_or_not_at_all(
    quote: str, found: str | None
) -> None:
    place = locate(TEXT, quote, 0, len(TEXT))
    assert (None if place is None else TEXT[slice(*place)]) == found


def test_a_quote_is_found_where_it_stands_in_its_part() -> None:
    text = "the bridge opened. " + TEXT
    assert locate(text, "THE BRIDGE  OPENED on", 19, len(text)) == (19, 40)
    assert locate(text, "the bridge opened", 19, len(text)) == (19, 37)
    assert text[19:40] == "The  Bridge\nopened on"


@examples(200)
@given(st.text(max_size=80), st.integers(0, 80), st.integers(0, 80), st.text(max_size=20))
def test_a_quote_is_inside_its_part(text: str, start: int, end: int, quote: str) -> None:
    for wanted in (quote, text[start:end]):
        place = locate(text, wanted, start, end)
        assert place is None or start <= place[0] < place[1] <= min(end, len(text))


def test_notes_are_read_as_json_as_lines_and_as_words() -> None:
    json = (
        '```json\n{"information": "It opened.", "quotes": ["opened on", 4],'
        ' "answer": 1931, "confidence": "4"}\n```'
    )
    lines = (
        "**Information:** It opened.\nQuote: opened on\nQuote: 4\nanswer: 1931\nConfidence: 4 of 5"
    )
    for text in (json, lines):
        written = read_note(text)
        assert written is not None
        assert (written.note.information, written.note.answer) == ("It opened.", "1931")
        assert written.note.confidence == 4
        assert written.quotes == ("opened on", "4")
    plain = read_note("It just opened.")
    assert plain is not None
    assert (plain.note.information, plain.note.confidence) == ("It just opened.", UNSURE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NO INFORMATION",
        "Information: no information.",
        '{"information": "", "answer": "No information"}',
        "[NO INFORMATION]",
    ],
)
def test_a_part_that_says_nothing_gives_no_note(text: str) -> None:
    assert read_note(text) is None


@pytest.mark.parametrize("said", ["99", "-3", "1e999", "five", "", "NaN"])
def test_confidence_stays_between_its_bounds(said: str) -> None:
    written = read_note(f"Information: x\nConfidence: {said}")
    assert written is not None
    assert 0 <= written.note.confidence <= 5


def test_quotes_that_do_not_exist_are_dropped_and_the_part_is_the_source() -> None:
    document = Document("a.txt", "First part. It opened in 1931.")
    part = DocumentPart(document, 12, 30)
    written = read_note(
        "Information: x\nQuote: First part\nQuote: opened in 1931\nQuote: opened in 1931"
    )
    assert written is not None
    assert looked_up(written, part).evidence == (Evidence("", "a.txt", 15, 29, "opened in 1931"),)
    forged = read_note("Information: x\nQuote: closed in 1932")
    assert forged is not None
    assert looked_up(forged, part).evidence == (Evidence("", "a.txt", 12, 30, part.text),)


def source(marker: str) -> Evidence:
    return Evidence(marker, "d", 0, 1, "x")


def test_a_merged_note_keeps_the_sources_it_names_or_the_surest() -> None:
    notes = numbered(
        [
            Note("a", confidence=1, evidence=(source(""),) * 6),
            Note("b", confidence=4, evidence=(source(""),) * 4),
        ]
    )
    assert [piece.marker for note in notes for piece in note.evidence] == [
        str(n) for n in range(1, 11)
    ]
    written = read_note("Information: ab\nSources: [2], [99] and [7]")
    assert written is not None
    assert [piece.marker for piece in merged(written, ["2", "99", "7", "2"], notes).evidence] == [
        "2",
        "7",
    ]
    kept = [piece.marker for piece in merged(written, ["99"], notes).evidence]
    assert kept == ["7", "8", "9", "10", "1", "2", "3", "4"]
    assert len(kept) == MOST_SOURCES


def test_conflicts_are_weighed_by_confidence() -> None:
    notes = [
        Note("", "Lyon", 4),
        Note("", "paris.", 2),
        Note("", "Paris", 3),
        Note("", "", 5),
        Note("", "No information", 5),
    ]
    assert weigh(notes) == (("Paris", 5.0), ("Lyon", 4.0))
    assert [note.answer for note in surest(notes[:3], 2)] == ["Lyon", "Paris"]


@given(st.lists(st.integers(0, 30), max_size=20), st.integers(1, 40))
def test_groups_are_neighbours_that_fit(sizes: list[int], room: int) -> None:
    groups = fitting_groups(sizes, room)
    assert [place for group in groups for place in group] == list(range(len(sizes)))
    assert all(len(group) == 1 or sum(sizes[n] for n in group) <= room for group in groups)


def test_markers_that_stand_for_nothing_are_taken_out() -> None:
    known = [source("1"), source("2"), source("12")]
    cited = check_markers("It opened [2] in May [3, 1] [99]. See [note] and [12].", known)
    assert cited.answer == "It opened [2] in May [1]. See [note] and [12]."
    assert [piece.marker for piece in cited.evidence] == ["2", "1", "12"]
    assert cited.forged == ("3", "99")


@given(st.text(st.sampled_from("[]12, a;\n"), max_size=60))
def test_no_text_of_others_keeps_a_marker(text: str) -> None:
    assert check_markers(without_markers(text), [source("1")]).evidence == ()
