"""What replies are read as, in both spellings, and what is said of those that cannot be read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agents.loops.scripted_agent import call, cost, says
from weft.agents.chat.reply import ParsedReply, RequestedCall, read_reply
from weft.agents.chat.reply_format import ReplyFormat
from weft.core.errors import ModelOutputError
from weft.core.generated_text import is_blank
from weft.core.values import Completion, Usage
from weft.testing import FakeTools

TOOLS = FakeTools(price=len).specs()
ONE = ReplyFormat(TOOLS, 1)
MANY = ReplyFormat(TOOLS, 3, many=True)
JOIN = ReplyFormat(replan=True)
LAST = ReplyFormat()
NUMBER = ReplyFormat(answer={"type": "integer"})
TEA = RequestedCall("price", {"item": "tea"})
COFFEE = RequestedCall("price", {"item": "coffee"})


def read(text: str, form: ReplyFormat, finish: Any = "stop") -> ParsedReply:
    return read_reply(Completion(text, finish, usage=Usage(completion_tokens=9)), form)


@pytest.mark.parametrize(
    ("text", "form", "reply"),
    [
        (says(call=call("price", item="tea")), ONE, ParsedReply("so", (TEA,))),
        (says(calls=cost("tea", "coffee")), MANY, ParsedReply("so", (TEA, COFFEE))),
        (says(calls=cost("tea", "coffee")), ONE, ParsedReply("so", (TEA,), left_out=1)),
        (says(call=call("price", item="tea")), MANY, ParsedReply("so", (TEA,))),
        (says(answer="tea (the green one)"), MANY, ParsedReply("so", answer="tea (the green one)")),
        (says(replan="milk"), JOIN, ParsedReply("so", replan="milk")),
        (says(answer=7), NUMBER, ParsedReply("so", answer=7)),
        (says(answer="7"), NUMBER, ParsedReply("so", answer=7)),
        (says(answer={"a": [1]}), LAST, ParsedReply("so", answer='{"a": [1]}')),
        ('{"answer": "tea"}', ONE, ParsedReply(answer="tea")),
        (f"```json\n{says(answer='tea')}\n```", ONE, ParsedReply("so", answer="tea")),
        (f"Here you are: {says(answer='tea')}", ONE, ParsedReply("so", answer="tea")),
        (
            '{"call": {"tool": "price", "args": "{\\"item\\": \\"tea\\"}"}}',
            ONE,
            ParsedReply("", (TEA,)),
        ),
        ('{"next": {"calls": [], "answer": "tea"}}', MANY, ParsedReply(answer="tea")),
    ],
)
def test_json(text: str, form: ReplyFormat, reply: ParsedReply) -> None:
    assert read(text, form) == reply


CALL_TEA = f"Call: {json.dumps(call('price', item='tea'))}"
CALL_COFFEE = f"Call: {json.dumps(call('price', item='coffee'))}"


@pytest.mark.parametrize(
    ("text", "form", "reply"),
    [
        (f"Thought: so\n{CALL_TEA}", ONE, ParsedReply("so", (TEA,))),
        (f"Thought: so\n{CALL_TEA}\n{CALL_COFFEE}", MANY, ParsedReply("so", (TEA, COFFEE))),
        (f"{CALL_TEA}\nResults:\n1. price = 3\nAnswer: made up", ONE, ParsedReply("", (TEA,))),
        (f"**Action:** {CALL_TEA[6:]}", ONE, ParsedReply("", (TEA,))),
        ("Thought: so\nAnswer: f(x) = (a) and\n(b)\nThought: too", ONE,
         ParsedReply("so", answer="f(x) = (a) and\n(b)\nThought: too")),
        ("Answer: as in\nAnswer: b", ONE, ParsedReply(answer="as in\nAnswer: b")),
        ("final answer: tea", ONE, ParsedReply(answer="tea")),
        (
            "Thought: so\nReplan: the price of milk",
            JOIN,
            ParsedReply("so", replan="the price of milk"),
        ),
        ("Thought: milk is missing\nReplan:", JOIN,
         ParsedReply("milk is missing", replan="milk is missing")),
        ("Answer: 7", NUMBER, ParsedReply(answer=7)),
        ("7", NUMBER, ParsedReply(answer=7)),
        ("just tea {not coffee}", LAST, ParsedReply(answer="just tea {not coffee}")),
    ],
)  # fmt: skip
def test_labels(text: str, form: ReplyFormat, reply: ParsedReply) -> None:
    assert read(text, form) == reply


@given(st.text(min_size=1).map(str.strip).filter(lambda text: not is_blank(text)))
def test_no_text_of_an_answer_is_ever_cut(answer: str) -> None:
    assert read(f"Thought: so\nAnswer: {answer}", JOIN).answer == answer
    assert read(says(answer=answer), JOIN).answer == answer


@pytest.mark.parametrize(
    ("text", "form", "told"),
    [
        ("", ONE, "it was empty"),
        (" \n", LAST, "it was empty"),
        ("the tea is cheaper", ONE, "neither a call nor an answer"),
        ("Thought: hm", ONE, "a thought, but neither a call nor an answer"),
        (says(answer="  "), ONE, "the answer is empty"),
        (says(answer="x"), NUMBER, "the answer is not JSON"),
        (says(answer=[1]), NUMBER, "does not fit its schema"),
        (says(call=call("price")), LAST, "no call can be made any more"),
        (says(replan="more"), LAST, "nothing more can be planned"),
        (says(replan="more"), ONE, "nothing more can be planned"),
        (says(calls="all"), MANY, '"calls" is not a list'),
        (says(call="price"), ONE, '"name" and "arguments"'),
        (says(call={"arguments": {}}), ONE, 'no "name"'),
        (says(call={"name": "price", "arguments": [1]}), ONE, "of price are not an object"),
        (says(call={"name": "price", "arguments": "tea"}), ONE, "of price is not JSON"),
        ('{"next": 3}', ONE, '"next" is not an object'),
        ("{}", ONE, "neither a call nor an answer"),
        ('{"thought": "so", "next": {"answer": "te', LAST, "it is not JSON"),
        ("Call: price(tea)", ONE, "a call is not JSON"),
    ],
)
def test_what_is_wrong_is_said(text: str, form: ReplyFormat, told: str) -> None:
    with pytest.raises(ModelOutputError) as caught:
        read(text, form)
    assert told in str(caught.value)


@pytest.mark.parametrize("text", ["Answer: tea is", '{"thought": "so", "ne', "tea is"])
def test_what_was_cut_off_is_no_answer(text: str) -> None:
    with pytest.raises(ModelOutputError, match="cut off after 9 tokens"):
        read(text, LAST, "length")


def test_a_reply_that_is_complete_at_the_last_token_counts() -> None:
    assert read(says(answer="tea"), ONE, "length").answer == "tea"
    assert read(f"Thought: so\n{CALL_TEA}", ONE, "length").calls == (TEA,)


@given(st.text(), st.sampled_from([ONE, MANY, JOIN, LAST, NUMBER]))
def test_any_text_is_a_reply_or_a_model_output_error(text: str, form: ReplyFormat) -> None:
    try:
        reply = read(text, form)
    except ModelOutputError:
        return
    assert len(reply.calls) <= form.calls
    assert form.replan or reply.replan is None
