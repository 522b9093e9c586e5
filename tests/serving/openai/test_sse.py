from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import ModelOutputError
from weft.serving.openai.transport import EventParser

LINE = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=12)
END = st.sampled_from(["\n", "\r\n", "\r"])


def parse(stream: bytes, cuts: list[int]) -> list[bytes]:
    parser = EventParser(10_000)
    places = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    pieces = [stream[a:b] for a, b in pairwise(places)]
    return [data for piece in pieces for data in parser.feed(piece)] + parser.end()


@given(
    events=st.lists(st.lists(LINE, min_size=1, max_size=3), max_size=5),
    noise=st.lists(st.sampled_from([": ping", "event: x", "id: 3", "unknown"]), max_size=3),
    end=END,
    cuts=st.lists(st.integers(0, 10_000), max_size=20),
)
def test_any_cut_and_line_end_gives_the_same_events(
    events: list[list[str]], noise: list[str], end: str, cuts: list[int]
) -> None:
    text = ""
    for lines in events:
        text += "".join(f"{line}{end}" for line in noise)
        text += "".join(f"data: {line}{end}" for line in lines) + end
    assert parse(text.encode(), cuts) == ["\n".join(lines).encode() for lines in events]


@given(stream=st.binary(max_size=200), cuts=st.lists(st.integers(0, 200), max_size=10))
def test_cuts_never_matter(stream: bytes, cuts: list[int]) -> None:
    assert parse(stream, cuts) == parse(stream, [])


def test_the_blank_after_the_colon_is_optional_and_single() -> None:
    assert parse(b"data:a\n\ndata:  b\n\n", []) == [b"a", b" b"]


def test_an_event_without_its_closing_line_counts_at_the_end() -> None:
    assert parse(b"data: a\n\ndata: b", []) == [b"a", b"b"]


@pytest.mark.parametrize("flood", [b"x", b"data: y\n"], ids=["one long line", "many data lines"])
def test_one_event_cannot_grow_without_bound(flood: bytes) -> None:
    parser = EventParser(1000)
    for _ in range(1000 // len(flood.strip())):
        parser.feed(flood)
    with pytest.raises(ModelOutputError, match="1,000 bytes") as raised:
        parser.feed(flood)
    assert not raised.value.retryable


def test_comments_and_small_events_may_go_on_for_ever() -> None:
    parser = EventParser(1000)
    for _ in range(2000):
        assert parser.feed(b": ping\n") == []
        assert parser.feed(b"data: 1234567890\n\n") == [b"1234567890"]
