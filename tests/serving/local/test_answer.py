from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from weft.core.ports import TextDelta
from weft.serving.local.answer import AnswerText, SampledToken

TEXT = st.text(alphabet="ab<|é漢🎉�\n", max_size=30)


def cut(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    """`data` in pieces, as tokens would hold them."""
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in pairwise(edges)]


def play(pieces: Sequence[bytes], stop: Sequence[str] = ()) -> tuple[AnswerText, list[TextDelta]]:
    answer = AnswerText(lambda token: pieces[token], stop)
    deltas = []
    for token in range(len(pieces)):
        answer.add(SampledToken(token))
        if answer.stopped:
            break
        if delta := answer.delta():
            deltas.append(delta)
    answer.finish()
    if last := answer.last_delta():
        deltas.append(last)
    return answer, deltas


@given(text=TEXT, cuts=st.lists(st.integers(0, 200), max_size=40))
@example(text="🎉", cuts=[1, 2, 3])
def test_no_delta_holds_half_a_character(text: str, cuts: list[int]) -> None:
    pieces = cut(text.encode(), cuts)
    answer, deltas = play(pieces)
    assert answer.text == "".join(delta.text for delta in deltas) == text
    assert [i for delta in deltas for i in delta.token_ids] == list(range(len(pieces)))
    written = 0
    for delta in deltas:
        written += len(delta.text)
        assert delta.text == text[written - len(delta.text) : written]


@given(data=st.binary(max_size=20), cuts=st.lists(st.integers(0, 200), max_size=20))
def test_broken_bytes_become_replacement_characters(data: bytes, cuts: list[int]) -> None:
    answer, deltas = play(cut(data, cuts))
    assert answer.text == "".join(delta.text for delta in deltas) == data.decode("utf-8", "replace")


@given(
    text=TEXT,
    cuts=st.lists(st.integers(0, 200), max_size=40),
    stop=st.lists(st.text(alphabet="ab<|é", min_size=1, max_size=4), min_size=1, max_size=3),
)
@example(text="a<|ab", cuts=range(9), stop=["<|a", "|"])
def test_a_stop_string_ends_the_text_before_it_however_it_is_cut(
    text: str, cuts: list[int], stop: list[str]
) -> None:
    pieces = cut(text.encode(), cuts)
    answer, deltas = play(pieces, stop)
    assert (answer.stopped is not None) == any(word in text for word in stop)
    # a word is seen as soon as a token completes it, so an earlier word may still be incomplete
    ends = [
        len(text[: text.find(word)].encode()) + len(word.encode()) for word in stop if word in text
    ]
    if answer.stopped:
        read = b"".join(pieces[: len(answer.token_ids)])
        assert len(read) >= min(ends)
        assert len(read) - len(pieces[len(answer.token_ids) - 1]) < min(ends)
        seen = read.decode("utf-8", "ignore")
        expected = seen[: min(seen.find(word) for word in stop if word in seen)]
    else:
        expected = text
    assert answer.text == "".join(delta.text for delta in deltas) == expected


def test_text_that_may_begin_a_stop_string_waits_until_it_does_not() -> None:
    pieces = [b"one ", b"EN", b"TER ", b"END", b" two"]
    answer = AnswerText(lambda token: pieces[token], ["END"])
    shown = []
    for token in range(4):
        answer.add(SampledToken(token))
        delta = answer.delta()
        shown.append(delta and delta.text)
    assert shown == ["one ", None, "ENTER ", None]
    assert answer.stopped


def test_every_token_and_logprob_is_given_out_once() -> None:
    pieces = [b"a", b"", b"b", b""]
    answer = AnswerText(lambda token: pieces[token], [])
    deltas = []
    for token in range(4):
        answer.add(SampledToken(token, -float(token)))
        if delta := answer.delta():
            deltas.append(delta)
    answer.finish()
    last = answer.last_delta()
    assert [*deltas, last] == [
        TextDelta("a", (0,), (0.0,)),
        TextDelta("b", (1, 2), (-1.0, -2.0)),
        TextDelta("", (3,), (-3.0,)),
    ]
    assert answer.last_delta() is None
