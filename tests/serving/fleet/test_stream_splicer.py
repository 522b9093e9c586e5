from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving.fleet.server import END, LETTERS, Detokenizer, decoded, next_token
from weft.core.ports import ModelRequest, ReasoningDelta, Sampling, TextDelta, ToolCallDelta
from weft.core.values import Completion, Message, ToolCall
from weft.serving.fleet.resume import RepeatedStream, ResumedStream, StreamDiverged
from weft.serving.fleet.transcript import StreamSplicer, Transcript


@given(
    st.lists(st.sampled_from(LETTERS), min_size=1, max_size=9),
    st.sampled_from([(), ("##",), ("never met", "x"), ("zzz",)]),
    st.lists(st.integers(1, 4), min_size=30, max_size=60),
)
def test_what_goes_through_is_the_text_of_the_ids_that_go_through(
    prompt: list[int], stop: tuple[str, ...], sizes: list[int]
) -> None:
    seam, server = StreamSplicer(stop), Detokenizer(prompt, stop)
    ids: list[int] = []
    text, through = "", []
    for size in sizes:
        new: list[int] = []
        ended = False
        while len(new) < size and not ended:
            token = next_token(prompt + ids + new)
            ended = token == END or server.take(token)
            new.append(token)
        ids += new
        if ended:
            break
        out = seam.take(TextDelta(server.news(finished=False), tuple(new)))
        if out is not None:
            text += out.text
            through += out.token_ids
            assert out.text
            assert through == ids[: len(through)]
            assert text == decoded(through)
    last = seam.flush()
    assert through + list(last.token_ids if last else ()) == ids[: len(ids) - len(new) * ended]


def test_text_that_may_begin_a_stop_string_waits_with_its_ids() -> None:
    """For `STOP` the server holds three characters back, wherever tokens begin and end."""
    seam = StreamSplicer(["STOP", "!"])
    assert seam.take(TextDelta("", (1,))) is None  # "ab" is held back
    assert seam.take(TextDelta("abc", (2,))) is None  # of "abcd" "ef": "cd" belongs to the second
    assert seam.take(TextDelta("def", (3,))) == TextDelta("abcdef", (1, 2))
    assert seam.flush() == TextDelta("", (3,))


def test_bytes_of_one_character_go_through_together() -> None:
    seam = StreamSplicer(())
    assert seam.take(TextDelta("a", (1,))) == TextDelta("a", (1,))
    assert seam.take(TextDelta("", (2,))) is None
    assert seam.take(TextDelta("", (3,))) is None
    assert seam.take(TextDelta("é", (4,))) == TextDelta("é", (2, 3, 4))
    assert seam.take(TextDelta("", (5,))) is None
    assert seam.flush() == TextDelta("", (5,))
    assert seam.flush() is None


def test_several_tokens_at_once_may_end_within_a_character() -> None:
    seam = StreamSplicer(())
    seam.take(TextDelta("a", (1, 2)))
    assert not seam.sure
    seam.take(TextDelta("b", (3,)))
    assert seam.sure


def cut(text: str, ids: tuple[int, ...], *, sure: bool = True, **sampling: object) -> Transcript:
    """A request of which so much has been delivered."""
    drawn = Sampling(max_tokens=9, **sampling)  # type: ignore[arg-type]
    transcript = Transcript(ModelRequest((Message("user", "hi"),), sampling=drawn))
    transcript.prompt_ids = (1,) * 12
    transcript.note(TextDelta(text, ids))
    transcript.sure = sure
    return transcript


class TestEcho:
    """A prompt that ends within a character makes vLLM repeat its text: seen with SmolLM2."""

    def test_it_is_taken_off(self) -> None:
        transcript = cut("Hi 漢", (1, 2), sure=False)
        leg = ResumedStream(transcript, transcript.request)
        assert leg.take(TextDelta("user says: Hi 漢🎉", (3,))) == [TextDelta("🎉", (3,))]
        assert leg.take(TextDelta("Hi 漢 again", (4,))) == [TextDelta("Hi 漢 again", (4,))]
        [end] = leg.take(Completion("x", token_ids=(3, 4)))
        assert isinstance(end, Completion)
        assert (end.text, end.token_ids) == ("Hi 漢🎉Hi 漢 again", (1, 2, 3, 4))

    def test_a_sure_cut_has_none(self) -> None:
        transcript = cut("Hi", (1, 2))
        same = TextDelta("a Hi and much text", (3,))
        assert ResumedStream(transcript, transcript.request).take(same) == [same]

    def test_a_repetition_is_none(self) -> None:
        transcript = cut("ha", (1, 2), sure=False)
        same = TextDelta(" ha ha", (3, 4))
        assert ResumedStream(transcript, transcript.request).take(same) == [same]

    @pytest.mark.parametrize(
        ("stop", "text"), [((), "Hi user said: Hi 🎉"), (("x",), "the user said: Hi 🎉")]
    )
    def test_what_cannot_be_told_is_an_error(self, stop: tuple[str, ...], text: str) -> None:
        transcript = cut("Hi", (1, 2), sure=False, stop=stop)
        with pytest.raises(StreamDiverged, match="within a character"):
            ResumedStream(transcript, transcript.request).take(TextDelta(text, (3,)))


class TestRepeated:
    def test_all_kinds_of_pieces_are_skipped_as_far_as_they_went(self) -> None:
        transcript = Transcript(ModelRequest((Message("user", "hi"),)))
        for delta in (
            ReasoningDelta("I think", (1, 2)),
            TextDelta("Wel", (3,), (-0.5,)),
            ToolCallDelta(0, '{"a"', "id-1", "add"),
        ):
            transcript.note(delta)
        leg = RepeatedStream(transcript)
        assert leg.take(ReasoningDelta("I ", (1,))) == []
        assert leg.take(ReasoningDelta("think", (2,))) == []
        assert leg.take(TextDelta("Well", (3, 4), (-0.5, -0.25))) == [
            TextDelta("l", (4,), (-0.25,))
        ]
        assert leg.take(ToolCallDelta(0, "{", "id-9", "add")) == []
        assert leg.take(ToolCallDelta(0, '"a": 1}')) == [ToolCallDelta(0, ": 1}")]
        other = ToolCallDelta(1, "{}", "id-8", "sub")
        assert leg.take(other) == [other]
        calls = (ToolCall("id-9", "add", '{"a": 1}'), ToolCall("id-8", "sub", "{}"))
        [end] = leg.take(Completion("Well", "tool_calls", calls))
        assert isinstance(end, Completion)
        assert [call.id for call in end.tool_calls] == ["id-1", "id-8"]

    def test_reasoning_goes_on_where_it_was_cut(self) -> None:
        transcript = Transcript(ModelRequest((Message("user", "hi"),)))
        transcript.note(ReasoningDelta("I thi", (1, 2)))
        leg = RepeatedStream(transcript)
        assert leg.take(ReasoningDelta("I think", (1, 2, 3))) == [ReasoningDelta("nk", (3,))]

    @pytest.mark.parametrize(
        "event",
        [
            TextDelta("Bad", ()),
            TextDelta("", (9,)),
            ToolCallDelta(0, "[", "id", "add"),
            Completion("W"),
        ],
    )
    def test_what_differs_is_an_error(self, event: TextDelta | ToolCallDelta | Completion) -> None:
        transcript = Transcript(ModelRequest((Message("user", "hi"),)))
        transcript.note(TextDelta("Wel", (3,)))
        transcript.note(ToolCallDelta(0, "{", "id", "add"))
        with pytest.raises(StreamDiverged):
            RepeatedStream(transcript).take(event)
