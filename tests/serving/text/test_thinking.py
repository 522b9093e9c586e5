from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving.text.splitting import Folded, cuts, fold
from weft.core.ports import ReasoningDelta, TextDelta
from weft.serving.text import ReasoningStyle, Splitter

CASES: list[tuple[ReasoningStyle, str, Folded]] = [
    ("think", "<think>Hm.</think>Yes.", Folded("Yes.", "Hm.")),
    ("think", "\n<think>\nHm. \n</think>\n\nYes.\n", Folded("Yes.\n", "Hm. \n")),
    ("think", "Yes.", Folded("Yes.")),
    ("think", " \n Yes.", Folded(" \n Yes.")),
    ("think", "", Folded("")),
    ("think", "<thin", Folded("<thin")),
    ("think", "<think>never ends", Folded("", "never ends")),
    ("think", "<think>a</thin", Folded("", "a</thin")),
    ("think", "<think></think>", Folded("")),
    ("think", "Tags are <think>these</think>.", Folded("Tags are <think>these</think>.")),
    ("think", "<think>a</think>b<think>c</think>", Folded("b<think>c</think>", "a")),
    ("think", "Hm.</think>\n\nYes.", Folded("Yes.", "Hm.")),
    ("think", " Hm.</think>", Folded("", "Hm.")),
    ("think", "</think>Yes.", Folded("Yes.")),
    ("think", "Yes, a < b.</thin", Folded("Yes, a < b.</thin")),
    ("think-open", "Hm.</think>Yes.", Folded("Yes.", "Hm.")),
    ("think-open", "<think>\nHm.</think>Yes.", Folded("Yes.", "Hm.")),
    ("think-open", "Hm. Never ends", Folded("", "Hm. Never ends")),
    ("think-open", "<thi", Folded("", "<thi")),
    ("think-open", "</think>Yes.", Folded("Yes.")),
]


@pytest.mark.parametrize(("style", "text", "wanted"), CASES)
def test_reasoning_is_told_from_the_answer(
    style: ReasoningStyle, text: str, wanted: Folded
) -> None:
    assert fold([text], None, style) == wanted
    assert fold(text, None, style) == wanted


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<th", "</", "\n", " " * 40, "a"])),
    st.sampled_from(["think", "think-open"]),
    st.data(),
)
def test_any_split_gives_the_same(
    parts: list[str], style: ReasoningStyle, data: st.DataObject
) -> None:
    text = "".join(parts)
    whole = fold([text], None, style)
    assert fold(text, None, style) == whole
    assert fold(data.draw(cuts(text)), None, style) == whole


def test_only_what_may_be_a_tag_is_held_back() -> None:
    splitter = Splitter("think")
    assert splitter.feed("<think>Hm, 1 <") == [ReasoningDelta("Hm, 1 ")]
    assert splitter.holding
    assert splitter.thinking
    assert splitter.feed(" 2") == [ReasoningDelta("< 2")]
    assert splitter.feed("</think>") == []
    assert not splitter.thinking
    assert splitter.feed("So ") == [TextDelta("So ")]
    assert splitter.feed("it is") == [TextDelta("it is")]


def test_calls_within_reasoning_are_only_thought_of() -> None:
    call = '<tool_call>{"name": "add", "arguments": {}}</tool_call>'
    folded = fold([f"<think>Perhaps {call}</think>{call}"], "hermes", "think")
    assert folded == Folded("", f"Perhaps {call}", (("add", "{}"),))


def test_a_splitter_that_looks_for_nothing_passes_everything_on_at_once() -> None:
    splitter = Splitter()
    for text in ("<think>", "\n", "<tool_call>"):
        assert splitter.feed(text) == [TextDelta(text)]
        assert not splitter.holding
    assert splitter.end() == []
