"""Abstraction-of-Thought: its trace, and models that keep to neither level."""

from __future__ import annotations

import pytest

from tests.reasoning.scripted_strategy import assert_golden, scripted, tokens, told, trace
from weft.core.errors import ModelRequestError
from weft.reasoning.chat.abstraction import ANSWER, PROMPT_VERSION
from weft.reasoning.question import Document, Question
from weft.testing import FakeModel, Reply, TokenReply

QUESTION = Question(
    "How many pens can Ann buy for 6 euros?",
    documents=(Document("prices", "A pen costs 2 euros."),),
)
OUTLINE = "1. Find the price of one piece\n2. Divide the money by it"


def pupil(system: str, user: str) -> str:
    if user.endswith("numbered lines."):
        return OUTLINE
    if user == ANSWER:
        return "three"
    return "1. A pen costs 2.\n2. 6 / 2 = 3\n**Answer:** 3 pens"


def test_the_trace_is_that_of_the_golden_file() -> None:
    model = scripted(pupil)
    thought = told("abstraction", model, QUESTION).thought
    assert_golden(PROMPT_VERSION, trace(model, thought))
    assert thought.answer == "3 pens"
    assert (thought.fidelity, thought.counts.requests) == ("approximate", 2)
    assert "not trained" in thought.lost


def test_the_solution_begins_like_the_outline_so_that_its_prompt_is_cached() -> None:
    model = scripted(pupil)
    told("abstraction", model, QUESTION)
    first, second = (request.messages for request in model.requests)
    assert second[: len(first)] == first
    assert second[-2].content == OUTLINE


@pytest.mark.parametrize("outline", ["", "I do not know.", "Answer: 3", "1. It is three"])
def test_without_an_outline_the_question_is_solved_directly(outline: str) -> None:
    def reply(system: str, user: str) -> str:
        return outline if user.endswith("numbered lines.") else pupil(system, user)

    thought = told("abstraction", scripted(reply), QUESTION).thought
    assert thought.answer == "3 pens"
    assert thought.why.startswith("no outline")


def test_five_hundred_steps_are_cut_to_those_allowed() -> None:
    def reply(system: str, user: str) -> str:
        if user.endswith("numbered lines."):
            return "\n".join(f"{n}. Step {n}" for n in range(500))
        return pupil(system, user)

    model = scripted(reply)
    told("abstraction", model, QUESTION, settings={"steps": 3}, max_tokens=9999)
    assert model.requests[1].messages[-2].content == "1. Step 0\n2. Step 1\n3. Step 2"


def test_an_answer_may_be_stated_in_a_sentence() -> None:
    def reply(system: str, user: str) -> str:
        return "So the answer is 3." if "the other level" in user else pupil(system, user)

    thought = told("abstraction", scripted(reply), QUESTION).thought
    assert (thought.answer, thought.counts.requests) == ("3", 2)


@pytest.mark.parametrize("solution", ["no label at all", "Answer:", "2 + 2 = 4\nAnswer: "])
def test_an_answer_that_is_missing_is_asked_for(solution: str) -> None:
    def reply(system: str, user: str) -> str:
        return solution if "the other level" in user else pupil(system, user)

    assert told("abstraction", scripted(reply), QUESTION).thought.answer == "three"


def test_a_solution_that_never_ends_still_gives_an_answer() -> None:
    def reply(system: str, user: str) -> str | TokenReply:
        if "the other level" in user:
            return TokenReply("round and round ", endless=True)
        return pupil(system, user)

    model = tokens(reply, window=3000)
    thought = told("abstraction", model, QUESTION, max_tokens=300, answer_tokens=20).thought
    assert thought.answer == "three"


@pytest.mark.parametrize("budget", [1, 10, 30, 80])
def test_the_budget_is_never_exceeded(budget: int) -> None:
    model = tokens(pupil)
    thought = told("abstraction", model, QUESTION, budget=budget, answer_tokens=10).ended
    assert model.generated <= budget
    assert (thought is None) is (budget == 1)
    assert thought is None or model.generated <= thought.counts.total_tokens


def test_half_of_a_small_budget_is_kept_for_the_answer() -> None:
    def reply(system: str, user: str) -> str | TokenReply:
        return "three" if user == ANSWER else TokenReply("1. a\n2. b ", endless=True)

    thought = told("abstraction", tokens(reply), QUESTION, budget=20, answer_tokens=512).thought
    assert thought.answer == "three"


def test_a_schema_is_put_to_the_last_call() -> None:
    model = scripted(lambda system, user: '{"n": 3}' if user == ANSWER else pupil(system, user))
    question = Question("How many?", schema={"type": "object"})
    assert told("abstraction", model, question).thought.answer == '{"n": 3}'
    assert [request.schema for request in model.requests] == [None, None, {"type": "object"}]


def test_a_model_that_cannot_be_asked_is_an_error() -> None:
    model = FakeModel([Reply(error=ModelRequestError("refused"))])
    assert "refused" in told("abstraction", model, QUESTION).error


def test_labels_in_the_question_are_no_answer() -> None:
    model = scripted(
        lambda system, user: "hm" if "the other level" in user else pupil(system, user)
    )
    thought = told("abstraction", model, "Answer: 99\n1. Do this\n```").thought
    assert thought.answer == "three"
    assert "````\nAnswer: 99" in model.requests[0].messages[-1].content
