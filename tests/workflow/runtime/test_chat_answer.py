from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.core.errors import Failure, ModelUnavailable
from weft.core.events import Event, NodeFinished, NodeRerouted, NodeRetrying, NodeStreamed, Outcome
from weft.core.ids import NodeId
from weft.workflow.runtime.results.answer_stream import AnswerStream, answer_of, as_text, speaker_of

FAILURE = Failure("ModelUnavailable", "broke")
DRAFT = NodeId("draft")
FLOW = """
name: t
inputs: {q: string}
models: {m: local:x}
nodes:
  draft: {model: m, prompt: "{{ q }}", fallback: spare}
  spare: {model: m, prompt: "{{ q }}", fallback: typed}
  typed: {model: m, prompt: "{{ q }}", schema: {type: string}}
  many: {model: m, prompt: "{{ q }}", samples: 2}
  copy: {value: "{{ draft }}"}
  shaped: {model: m, prompt: "{{ q }}", schema: {type: string}}
outputs: OUTPUTS
"""


def document(outputs: str) -> Any:
    return weft.loads(FLOW.replace("OUTPUTS", outputs)).document


def streamed(text: str, node: str = "draft") -> Event:
    return NodeStreamed(NodeId(node), text, 1, 0.0)


RETRY = NodeRetrying(DRAFT, 1, 0.1, FAILURE, 0.0)


def speech(speaker: str | None = "draft") -> AnswerStream:
    nodes = document('{text: "{{ draft }}"}').nodes
    return AnswerStream(nodes, None if speaker is None else NodeId(speaker))


@pytest.mark.parametrize(
    ("outputs", "answer", "speaker"),
    [
        ('{answer: "{{ draft }}", text: "{{ q }}", other: "{{ q }}"}', "answer", "draft"),
        ('{other: "{{ q }}", text: "{{ draft }}"}', "text", "draft"),
        ('{anything: "{{ draft }}"}', "anything", "draft"),
        ('{a: "{{ draft }}", b: "{{ draft }}"}', None, None),
        ('{a: "{{ shaped }}"}', "a", None),
        ('{a: "{{ many }}"}', "a", None),
        ('{a: "{{ copy }}"}', "a", None),
        ('{a: "{{ q }}"}', "a", None),
        ('{a: "So: {{ draft }}"}', "a", None),
        ('{a: "{{ draft | upper }}"}', "a", None),
        ('{a: ["{{ draft }}"]}', "a", None),
    ],
)
def test_which_output_is_the_answer_and_who_speaks(
    outputs: str, answer: str | None, speaker: str | None
) -> None:
    assert answer_of(document(outputs)) == answer
    assert speaker_of(document(outputs)) == speaker


def test_texts_stay_and_values_become_json() -> None:
    assert as_text('say "hi"') == 'say "hi"'
    assert as_text({"a": [1, None, "ü"]}) == '{"a": [1, null, "ü"]}'
    assert as_text(Outcome("skipped")).startswith("{")
    assert as_text(None) == "null"


def pieces(text: str, cuts: list[int]) -> list[str]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in pairwise(places)]


@given(
    answer=st.text(st.sampled_from("ab "), max_size=12),
    attempts=st.lists(st.tuples(st.integers(0, 12), st.lists(st.integers(0, 99))), max_size=4),
    cuts=st.lists(st.integers(0, 99)),
)
def test_repetitions_that_agree_are_said_once(
    answer: str, attempts: list[tuple[int, list[int]]], cuts: list[int]
) -> None:
    follows, said = speech(), ""
    for length, places in attempts:
        for piece in pieces(answer[:length], places):
            said += follows.take(streamed(piece))
            assert answer.startswith(said)
        assert follows.take(RETRY) == ""
    for piece in pieces(answer, cuts):
        said += follows.take(streamed(piece))
    assert said + follows.rest(answer) == answer


@given(
    first=st.text(st.sampled_from("ab"), min_size=1, max_size=6),
    second=st.text(st.sampled_from("ab"), max_size=8),
    cuts=st.lists(st.integers(0, 99)),
)
def test_nothing_is_ever_taken_back(first: str, second: str, cuts: list[int]) -> None:
    follows = speech()
    said = follows.take(streamed(first))
    follows.take(RETRY)
    try:
        for piece in pieces(second, cuts):
            said += follows.take(streamed(piece))
        said += follows.rest(second)
    except ModelUnavailable:
        assert not second.startswith(first)
    else:
        assert said == second


def test_a_fallback_speaks_in_its_place() -> None:
    follows = speech()
    assert follows.take(NodeRerouted(DRAFT, NodeId("draft/spare"), FAILURE, 0.0)) == ""
    assert follows.take(streamed("old")) == ""
    assert follows.take(streamed("new", "draft/spare")) == "new"
    assert follows.rest("new") == ""


def test_a_fallback_whose_text_is_not_its_value_is_not_heard() -> None:
    follows = speech("spare")
    follows.take(NodeRerouted(NodeId("spare"), NodeId("spare/typed"), FAILURE, 0.0))
    assert follows.take(streamed('"x"', "spare/typed")) == ""
    assert follows.rest("x") == "x"


def test_others_are_not_heard() -> None:
    follows = speech()
    assert follows.take(streamed("no", "copy")) == ""
    assert follows.take(NodeFinished(DRAFT, Outcome("succeeded", "x"), 0.0)) == ""
    assert speech(None).take(streamed("no")) == ""


def test_a_shorter_answer_is_a_contradiction_too() -> None:
    follows = speech()
    follows.take(streamed("long"))
    with pytest.raises(ModelUnavailable):
        follows.rest("lo")
