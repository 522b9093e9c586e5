from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.ports import ToolCallDelta
from weft.core.values import ToolCall
from weft.serving.openai.chunk import ToolPiece
from weft.serving.openai.output import ToolCalls


def piece(
    index: int | None = None, key: str | None = None, name: str | None = None, arguments: Any = None
) -> ToolPiece:
    return ToolPiece.model_validate(
        {"index": index, "id": key, "function": {"name": name, "arguments": arguments}}
    )


def assemble(pieces: list[ToolPiece]) -> tuple[ToolCall, ...]:
    """The calls, after checking that the deltas tell the same story."""
    calls = ToolCalls()
    deltas = [delta for p in pieces if (delta := calls.take(p)) is not None] + calls.finish()
    for position, call in enumerate(calls.calls()):
        first, *rest = [delta for delta in deltas if delta.index == position]
        assert (first.id, first.name) == (call.id, call.name)
        assert all((delta.id, delta.name) == ("", "") for delta in rest)
        assert "".join(delta.arguments for delta in (first, *rest)) == call.arguments
    assert len({delta.index for delta in deltas}) == len(calls.calls())
    return calls.calls()


WANTED = (ToolCall("a", "first", '{"x": 1}'), ToolCall("b", "second", '{"y": [2]}'))


@pytest.mark.parametrize("index", [True, False], ids=["index", "no index"])
@pytest.mark.parametrize("repeat_id", [True, False], ids=["id repeated", "id once"])
@pytest.mark.parametrize("repeat_name", [True, False], ids=["name repeated", "name once"])
@given(data=st.data())
def test_every_style_and_split_gives_the_same_calls(
    index: bool, repeat_id: bool, repeat_name: bool, data: st.DataObject
) -> None:
    pieces: list[ToolPiece] = []
    for position, call in enumerate(WANTED):
        text, parts = call.arguments, []
        while text:
            cut = data.draw(st.integers(1, len(text)))
            parts.append(text[:cut])
            text = text[cut:]
        if data.draw(st.booleans(), label="announced on its own"):
            parts.insert(0, "")
        for number, part in enumerate(parts):
            first = number == 0
            pieces.append(
                piece(
                    position if index else None,
                    call.id if first or repeat_id else None,
                    call.name if first or repeat_name else None,
                    part,
                )
            )
    assert assemble(pieces) == WANTED


def test_a_whole_call_in_one_piece() -> None:
    assert assemble([piece(0, "a", "first", "{}")]) == (ToolCall("a", "first", "{}"),)


def test_arguments_given_as_an_object_become_text() -> None:
    assert assemble([piece(0, "a", "f", {"x": 1})]) == (ToolCall("a", "f", '{"x": 1}'),)


def test_calls_may_interleave() -> None:
    pieces = [piece(0, "a", "f", '{"x'), piece(1, "b", "g", '{"y')]
    pieces += [piece(0, None, None, '":1}'), piece(1, None, None, '":2}')]
    assert assemble(pieces) == (ToolCall("a", "f", '{"x":1}'), ToolCall("b", "g", '{"y":2}'))


def test_one_index_for_all_calls_is_told_apart_by_id() -> None:
    pieces = [piece(0, "a", "f", "{}"), piece(0, "b", "f", "{}")]
    assert assemble(pieces) == (ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}"))


def test_calls_with_neither_index_nor_id_are_told_apart_by_completeness() -> None:
    pieces = [piece(None, None, "f", '{"x":'), piece(None, None, "f", "1}")]
    pieces += [piece(None, None, "f", '{"x":2}')]
    assert assemble(pieces) == (
        ToolCall("call_0", "f", '{"x":1}'),
        ToolCall("call_1", "f", '{"x":2}'),
    )


def test_an_index_that_comes_only_at_first() -> None:
    pieces = [piece(0, "a", "f", '{"x":'), piece(None, None, None, "1}")]
    assert assemble(pieces) == (ToolCall("a", "f", '{"x":1}'),)


def test_a_name_in_two_halves() -> None:
    pieces = [piece(0, "a", "get_"), piece(0, None, "time"), piece(0, None, None, "{}")]
    assert assemble(pieces) == (ToolCall("a", "get_time", "{}"),)


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert assemble([piece(0, "a", "now", "")]) == (ToolCall("a", "now", "{}"),)


def test_nothing_is_announced_before_its_name_is_known() -> None:
    calls = ToolCalls()
    assert calls.take(piece(0, "a", None, '{"x"')) is None
    assert calls.take(piece(0, None, "f", ":")) == ToolCallDelta(0, '{"x":', "a", "f")
    assert calls.take(piece(0, None, None, "1}")) == ToolCallDelta(0, "1}")


def test_a_last_piece_that_holds_everything_again_adds_nothing() -> None:
    pieces = [
        piece(0, "a", "f", '{"x":'),
        piece(0, "a", "f", " 1}"),
        piece(0, "a", "f", '{"x": 1}'),
    ]
    assert assemble(pieces) == (ToolCall("a", "f", '{"x": 1}'),)


def test_pieces_that_each_hold_all_so_far() -> None:
    whole = '{"x": "{\\"x"}'
    pieces = [piece(0, "a", "f", whole[:end]) for end in range(len(whole) + 1)]
    assert assemble(pieces) == (ToolCall("a", "f", whole),)


def test_an_empty_object_before_the_arguments_is_no_argument() -> None:
    pieces = [piece(0, "a", "f", "{}"), piece(0, None, None, '{"x"'), piece(0, None, None, ":1}")]
    assert assemble(pieces) == (ToolCall("a", "f", '{"x":1}'),)


def test_what_follows_complete_arguments_does_not_belong_to_them() -> None:
    pieces = [piece(0, "a", "f", '{"x":1}}'), piece(0, None, None, "}")]
    assert assemble(pieces) == (ToolCall("a", "f", '{"x":1}'),)


def test_one_index_for_all_calls_and_no_ids_is_told_apart_by_completeness() -> None:
    pieces = [piece(0, None, "f", '{"x":'), piece(0, None, None, "1}")]
    pieces += [piece(0, None, "f", '{"x":2}'), piece(0, None, "f", '{"x":2}')]
    pieces += [piece(0, None, "g", ""), piece(0, None, None, "{}")]
    assert assemble(pieces) == (
        ToolCall("call_0", "f", '{"x":1}'),
        ToolCall("call_1", "f", '{"x":2}'),
        ToolCall("call_2", "g", "{}"),
    )


@pytest.mark.parametrize("arguments", [[1], 3, True, "text", "[1]"])
def test_arguments_that_are_no_object_come_as_they_are(arguments: Any) -> None:
    wanted = arguments if isinstance(arguments, str) else json.dumps(arguments)
    assert assemble([piece(0, "a", "f", arguments)]) == (ToolCall("a", "f", wanted),)


def test_a_call_found_in_the_text_comes_after_those_of_the_server() -> None:
    calls = ToolCalls()
    calls.take(piece(0, "a", "f", "{"))
    assert calls.add("g", "{}") == ToolCallDelta(1, "{}", "call_1", "g")
    assert calls.take(piece(0, None, None, "}")) == ToolCallDelta(0, "}")


@pytest.mark.parametrize("repeats", ["whole", "so far"])
@given(
    arguments=st.dictionaries(st.text(max_size=4), st.text(max_size=6), min_size=1, max_size=3),
    data=st.data(),
)
def test_repeated_arguments_are_taken_once_however_they_are_cut(
    repeats: str, arguments: dict[str, str], data: st.DataObject
) -> None:
    text = json.dumps(arguments)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(text) - 1), max_size=5)))
    if repeats == "so far":
        parts = [text[:end] for end in [*cuts, len(text)]]
    else:
        parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)] + [text]
    pieces = [piece(0, "a", "f", part) for part in parts]
    assert assemble(pieces) == (ToolCall("a", "f", text),)


def test_an_id_that_comes_late_does_not_change_what_was_announced() -> None:
    calls = ToolCalls()
    assert calls.take(piece(0, None, "f", "{")) == ToolCallDelta(0, "{", "call_0", "f")
    assert calls.take(piece(0, "late", None, "}")) == ToolCallDelta(0, "}")
    assert calls.calls() == (ToolCall("call_0", "f", "{}"),)


@given(
    st.lists(
        st.builds(
            piece,
            st.none() | st.integers(-2, 3),
            st.none() | st.sampled_from(["", "a", "b"]),
            st.none() | st.sampled_from(["", "f", "g"]),
            st.none() | st.sampled_from(["", "{}", "{", "}", '{"x": 1}']),
        ),
        max_size=8,
    )
)
def test_nonsense_is_survived_and_told_consistently(pieces: list[ToolPiece]) -> None:
    assemble(pieces)
