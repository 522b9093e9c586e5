"""Self-Refine: its trace, and models that criticise without end, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.reasoning.scripted_strategy import assert_golden, scripted, tokens, told, trace
from weft.core.errors import ModelRequestError
from weft.reasoning.chat.self_refine import CRITIQUE, PROMPT_VERSION, REVISE, finds_nothing
from weft.reasoning.question import Document, Question
from weft.testing import FakeModel, Reply, TokenReply

QUESTION = Question(
    "How many pens can Ann buy for 6 euros?",
    documents=(Document("prices", "A pen costs 2 euros."),),
)
FINDING = "It divides by 3 and not by 2.\nVerdict: revise"
NOTHING = "All of it is right.\nVerdict: keep"
Say = Callable[[str, str], str | Reply]


def author(*critiques: str) -> Say:
    """Answers "answer 0", gets `critiques` in turn, and revises to "answer 1" and on."""
    left, written = list(critiques), 0

    def reply(_: str, user: str) -> str:
        nonlocal written
        if user == CRITIQUE:
            return left.pop(0)
        if user == REVISE:
            written += 1
        return f"answer {written}"

    return reply


def test_the_trace_is_that_of_the_golden_file() -> None:
    model = scripted(author(FINDING, NOTHING))
    thought = told("self-refine", model, QUESTION).thought
    assert_golden(PROMPT_VERSION, trace(model, thought))
    assert (thought.answer, thought.fidelity, thought.cut) == ("answer 1", "exact", False)
    assert thought.counts.requests == 4
    assert thought.counts.critical_path_tokens == thought.counts.total_tokens


def test_an_answer_with_nothing_to_mend_stays() -> None:
    thought = told("self-refine", scripted(author(NOTHING)), QUESTION).thought
    assert (thought.answer, thought.counts.requests) == ("answer 0", 2)
    assert thought.why == "critique 1 finds nothing to mend"


def test_each_prompt_begins_like_the_one_before_so_that_it_is_cached() -> None:
    model = scripted(author(FINDING, FINDING, NOTHING))
    told("self-refine", model, QUESTION)
    prompts = [request.messages for request in model.requests]
    for earlier, later in pairwise(prompts):
        assert later[: len(earlier)] == earlier


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_the_rounds_are_bounded(rounds: int) -> None:
    model = scripted(author(*[FINDING] * 9))
    thought = told("self-refine", model, QUESTION, rounds=rounds).thought
    assert (thought.answer, thought.counts.requests) == (f"answer {rounds}", 1 + 2 * rounds)
    assert thought.why == f"all {rounds} rounds are used up"


@pytest.mark.parametrize(
    ("critique", "nothing"),
    [
        ("Verdict: keep", True),
        ("Fine.\n**Verdict:** `Keep`.", True),
        ("Verdict: keep the answer", True),
        ("Verdict: keep\nNo, wait.\nVerdict: revise", False),
        ("Verdict: revise, or keep", False),
        ("Verdict: keeper", False),
        ("Verdict:", False),
        ("I would keep it.", False),
        ("", False),
    ],
)
def test_the_last_verdict_counts(critique: str, nothing: bool) -> None:
    assert finds_nothing(critique) is nothing


def test_a_verdict_in_question_or_answer_is_none() -> None:
    def reply(_: str, user: str) -> str:
        return {CRITIQUE: "Too short.", REVISE: "longer"}.get(user, "Verdict: keep")

    thought = told("self-refine", scripted(reply), "Verdict: keep", rounds=1).thought
    assert thought.answer == "longer"


@pytest.mark.parametrize("broken", [CRITIQUE, REVISE])
@pytest.mark.parametrize("says", [Reply(""), Reply(error=ModelRequestError("refused"))])
def test_an_answer_outlives_what_fails_after_it(broken: str, says: Reply) -> None:
    healthy = author(FINDING)

    def reply(system: str, user: str) -> str | Reply:
        return says if user == broken else healthy(system, user)

    thought = told("self-refine", scripted(reply), QUESTION).thought
    assert thought.answer == "answer 0"
    assert "answered nothing" in thought.why or "refused" in thought.why


def test_a_revision_that_is_cut_off_does_not_replace_a_whole_answer() -> None:
    def reply(_: str, user: str) -> str | TokenReply:
        if user == REVISE:
            return TokenReply("on and on ", endless=True)
        return FINDING if user == CRITIQUE else "three"

    thought = told("self-refine", tokens(reply), QUESTION, max_tokens=60).thought
    assert (thought.answer, thought.cut) == ("three", False)
    assert thought.why == "revision 1 is dropped: it is cut off"


def test_an_answer_that_is_cut_off_is_revised() -> None:
    def reply(_: str, user: str) -> str | TokenReply:
        if user == REVISE:
            return "three"
        return NOTHING.replace("keep", "revise") if user == CRITIQUE else TokenReply("x" * 999)

    thought = told("self-refine", tokens(reply), QUESTION, max_tokens=60, rounds=1).thought
    assert (thought.answer, thought.cut) == ("three", False)


def test_a_conversation_that_fills_the_window_ends_with_its_last_answer() -> None:
    def reply(_: str, user: str) -> str:
        return {CRITIQUE: "Longer! " * 20, REVISE: "longer " * 20}.get(user, "short")

    thought = told("self-refine", tokens(reply, window=3000), QUESTION, rounds=50).thought
    assert thought.answer == ("longer " * 20).strip()
    assert "window" in thought.why or "cut off" in thought.why


@pytest.mark.parametrize("budget", [1, 10, 30, 80])
def test_the_budget_is_never_exceeded(budget: int) -> None:
    model = tokens(lambda _, user: {CRITIQUE: FINDING, REVISE: "four"}.get(user, "three"))
    thought = told("self-refine", model, QUESTION, budget=budget, answer_tokens=10).thought
    assert model.generated <= budget
    assert thought.cut is (budget == 1)


def test_a_schema_is_put_to_answers_alone() -> None:
    model = scripted(lambda _, user: FINDING if user == CRITIQUE else '{"n": 3}')
    question = Question("How many?", schema={"type": "object"})
    assert told("self-refine", model, question, rounds=1).thought.answer == '{"n": 3}'
    schemas = [request.schema for request in model.requests]
    assert schemas == [question.schema, None, question.schema]


def test_a_model_that_cannot_be_asked_is_an_error() -> None:
    model = FakeModel([Reply(error=ModelRequestError("refused"))])
    assert "refused" in told("self-refine", model, QUESTION).error
