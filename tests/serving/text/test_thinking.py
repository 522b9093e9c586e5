from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving.text.splitting import Folded, cuts, fold
from weft.core.ports import ReasoningDelta, TextDelta
from weft.serving.text import ReasoningStyle, Splitter
from weft.serving.text.reasoning_forms import continued, marks_of, opened_thought, style_of

ANALYSIS = "<|channel|>analysis<|message|>"
FINAL = "<|start|>assistant<|channel|>final<|message|>"
CALL = "<|channel|>commentary to=functions.add <|constrain|>json<|message|>"
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
    ("mistral", "[THINK]Hm.[/THINK]Yes.", Folded("Yes.", "Hm.")),
    ("mistral", "[THINK]never ends", Folded("", "never ends")),
    ("mistral", "Hm.[/THINK]Yes.", Folded("Yes.", "Hm.")),
    ("mistral", "<think>is text</think>", Folded("<think>is text</think>")),
    ("granite", "<think>Hm.</think><response>Yes.</response>", Folded("Yes.", "Hm.")),
    ("granite", "<think>Hm.</think>\n<response>Yes.</response>\n", Folded("Yes.", "Hm.")),
    ("granite", "<think>Hm.</think>Yes </response> no", Folded("Yes </response> no", "Hm.")),
    ("granite", "<think>Hm.</think><response>cut </resp", Folded("cut </resp", "Hm.")),
    (
        "granite",
        "Here is my thought process: Hm. Here is my response: Yes.",
        Folded("Yes.", "Hm. "),
    ),
    ("granite", "Here's my thought process:\n\nHm.", Folded("", "Hm.")),
    ("granite", "Here is my answer.", Folded("Here is my answer.")),
    ("harmony", f"{ANALYSIS}Hm.<|end|>{FINAL}Yes.<|return|>", Folded("Yes.", "Hm.")),
    ("harmony", f"{ANALYSIS}never ends", Folded("", "never ends")),
    ("harmony", f"{ANALYSIS}Hm.<|end|>", Folded("", "Hm.")),
    ("harmony", f"{ANALYSIS}Hm.<|end|><|start|>assist", Folded("", "Hm.")),
    ("harmony", "<|channel|>final<|message|>Yes.", Folded("Yes.")),
    ("harmony", "Yes, a <| b.", Folded("Yes, a <| b.")),
    ("harmony", "Yes.<|return|>", Folded("Yes.")),
    ("harmony", f"{CALL}{{}}<|call|>", Folded("", "", (("add", "{}"),))),
    (
        "harmony",
        f'{ANALYSIS}Hm.<|end|><|start|>assistant{CALL}{{"a": 1}}<|call|>',
        Folded("", "Hm.", (("add", '{"a": 1}'),)),
    ),
    (
        "harmony",
        "<|start|>assistant to=functions.add<|channel|>commentary json<|message|>{}<|call|>",
        Folded("", "", (("add", "{}"),)),
    ),
    ("harmony", f'{CALL}{{"a": ', Folded('{"a": ')),
    ("harmony", f"{CALL.replace('add', 'rm')}{{}}<|call|>", Folded("{}")),
    ("harmony", "<|channel|>commentary<|message|>Now.<|end|>", Folded("", "Now.")),
    ("harmony", "<|message|>Yes.<|end|>", Folded("Yes.")),
    ("harmony", "<|channel|>" + "x" * 300, Folded("<|channel|>" + "x" * 300)),
    ("harmony", "", Folded("")),
]


MARKS = sorted({mark for style in get_args(ReasoningStyle) for mark in marks_of(style)})


@pytest.mark.parametrize(("style", "text", "wanted"), CASES)
def test_reasoning_is_told_from_the_answer(
    style: ReasoningStyle, text: str, wanted: Folded
) -> None:
    assert fold([text], None, style) == wanted
    assert fold(text, None, style) == wanted


@given(
    st.lists(st.sampled_from([*MARKS, "<th", "</", "<|", "\n", " " * 40, "Here", "a"])),
    st.sampled_from(get_args(ReasoningStyle)),
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


R1 = "<|User|>Why?<|Assistant|><think>\n"
MAGISTRAL = "[INST]Why?[/INST][THINK]"
HARMONY = "<|start|>user<|message|>Why?<|end|><|start|>assistant"


@pytest.mark.parametrize(
    ("prompt", "answer", "whole"),
    [
        ("Why?", "So", "Why?So"),
        (R1, "", R1),
        (R1, "So", f"{R1}\n</think>\n\nSo"),
        (R1, "<think>\nHm", f"{R1}Hm"),
        (R1, "Hm</think>So", f"{R1}Hm</think>So"),
        (MAGISTRAL, "So", f"{MAGISTRAL}\n[/THINK]\n\nSo"),
        (HARMONY, "So", f"{HARMONY}<|channel|>final<|message|>So"),
        (HARMONY, f"{ANALYSIS}Hm", f"{HARMONY}{ANALYSIS}Hm"),
    ],
)
def test_an_answer_goes_on_behind_the_thought(prompt: str, answer: str, whole: str) -> None:
    assert continued(prompt, answer) == whole


@pytest.mark.parametrize(
    ("template", "prompt", "style"),
    [
        ("{{ x }}", "<|im_start|>assistant\n", None),
        ("{{ x.split('</think>') }}", "<|im_start|>assistant\n", "think"),
        ("{{ x.split('</think>') }}<think>\n", R1, "think-open"),
        ("{{ x }}<think>\n", R1, "think-open"),
        ("[THINK]", "[INST]Why?[/INST]", "mistral"),
        ("</think><response>", "<|start_of_role|>assistant<|end_of_role|>", "granite"),
        ("<|channel|>analysis<|message|>", HARMONY, "harmony"),
        ("<|channel|>", "", None),
    ],
)
def test_a_form_is_taken_from_a_template_only_where_it_is_certain(
    template: str, prompt: str, style: ReasoningStyle | None
) -> None:
    assert style_of(template, prompt) == style
    assert (opened_thought(prompt) is not None) == (prompt == R1)
