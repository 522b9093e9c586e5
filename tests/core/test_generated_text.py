"""What is blank, what is a thought, and what a code fence holds."""

from __future__ import annotations

import pytest

from weft.core.generated_text import (
    ThoughtCounter,
    is_blank,
    open_thought,
    opening_of_thought,
    unfenced,
    without_thought,
)


@pytest.mark.parametrize(
    "text", ["", " \n\t", "\u200b\u200b", "\ufeff \u2060", "\u00ad", "\u3000\x00"]
)
def test_what_nobody_can_see_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["0", ".", "\u200b-", "\u200d\U0001f469", "\u4e2d"])
def test_what_can_be_seen_is_not(text: str) -> None:
    assert not is_blank(text)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>so</think>42", "42"),
        ("so</think>42", "42"),
        ("so</think>", ""),
        (" <think>so", ""),
        ("the tag <think> opens", "the tag <think> opens"),
        ("42", "42"),
    ],
)
def test_the_answer_follows_the_thought(text: str, answer: str) -> None:
    assert without_thought(text) == answer


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ('```json\n{"n": 1}\n```', '{"n": 1}'),
        ('\n```\n{"n": 1}\n```\n', '{"n": 1}'),
        ('```JSON {"n": 1}```', '{"n": 1}'),
        ('```json\n{"n": "```"}\n```', '{"n": "```"}'),
        ("Sure!\n```json\n1\n```", "Sure!\n```json\n1\n```"),
        ('```json\n{"n": 1', '```json\n{"n": 1'),
        ("```", "```"),
        ("`````", "`````"),
        ("``````", ""),
        (" 1 ", " 1 "),
    ],
)
def test_one_code_fence_is_taken_off(text: str, inside: str) -> None:
    assert unfenced(text) == inside


def test_long_texts_take_linear_time() -> None:
    blanks = " " * 1_000_000
    assert unfenced(f"```{blanks}```") == ""
    assert without_thought(f"{blanks}</think{blanks}") == f"{blanks}</think{blanks}"


HARMONY = "<|start|>assistant<|channel|>final<|message|>"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("[THINK]hm[/THINK]42", "42"),
        ("hm[/THINK]42", "42"),
        ("[THINK]never", ""),
        (f"<|channel|>analysis<|message|>hm<|end|>{HARMONY}42<|return|>", "42"),
        ("<|channel|>analysis<|message|>hm", ""),
        ("<|channel|>final<|message|>42", "42"),
        ("42<|return|>", "42"),
        ("A tag is [THINK], too", "A tag is [THINK], too"),
    ],
)
def test_thoughts_in_other_forms_are_left_out(text: str, answer: str) -> None:
    assert without_thought(text) == answer


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("", ""),
        ("<think>hm", "</think>"),
        ("<think>hm</think>", ""),
        ("<think>hm</think>a<think>", "</think>"),
        ("[THINK]hm", "[/THINK]"),
        ("<|channel|>analysis<|message|>hm", f"<|end|>{HARMONY}"),
        (f"<|channel|>analysis<|message|>hm<|end|>{HARMONY}42", ""),
    ],
)
def test_what_ends_an_open_thought(text: str, end: str) -> None:
    assert open_thought(text) == end
    assert not open_thought(text + end)


@pytest.mark.parametrize(
    ("prompt", "opened"),
    [
        ("<|im_start|>assistant\n<think>\n", "<think>\n"),
        ("[INST]Why?[/INST][THINK]", "[THINK]"),
        ("<think>\n\n</think>\n\n", ""),
        ("", ""),
    ],
)
def test_a_thought_that_the_prompt_opens(prompt: str, opened: str) -> None:
    assert opening_of_thought(prompt) == opened


GRANITE = ("Here is my thought process:hm Here is my response:", "Yes.")


@pytest.mark.parametrize("size", [1, 2, 5, 11])
@pytest.mark.parametrize(
    ("thought", "answer"),
    [
        ("", "42"),
        ("<think>hm</think>", "42"),
        (" \n<think>hm</think>", "42"),
        ("hm</think>", "42"),
        ("[THINK]hm[/THINK]", "42"),
        ("hm[/THINK]", "42"),
        (f"<|channel|>analysis<|message|>hm<|end|>{HARMONY}", "42"),
        ("", "<|channel|>final<|message|>42"),
        ("", "Here is my response: 42"),
        ("", "A tag is [THINK], too"),
        GRANITE,
        ("<think>never", ""),
        ("[THINK]never", ""),
    ],
)
def test_the_tokens_of_a_thought_in_every_form(thought: str, answer: str, size: int) -> None:
    counter = ThoughtCounter()
    text = thought + answer
    for at in range(0, len(text), size):
        piece = text[at : at + size]
        counter.add(piece, len(piece))
    most = min(len(text), -(-len(thought) // size) * size)
    assert counter.tokens == most
    assert counter.found == bool(thought)
