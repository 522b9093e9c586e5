"""A2R: explore side by side, synthesise once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.reasoning.protocols.protocol_trace import assert_golden, model_of, thought_of
from weft.core.errors import BuildError, ModelUnavailable
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Document, Question
from weft.reasoning.strategies import make_strategy
from weft.testing import TokenModel, TokenReply


def test_the_trace_is_golden() -> None:
    replies = iter(["<think>sixes</think>It is 42.", "It is 41. <|user|>", "42, checked."])
    model = model_of(lambda _: next(replies), ("<think>", "</think>"))
    question = Question("What is it?", "Be brief.", (Document("notes", "6 * 7"),))
    thought = thought_of("a2r", model, question, width=2)
    assert (thought.answer, thought.fidelity) == ("42, checked.", "exact")
    assert_golden("a2r", model, thought)


def test_attempts_share_the_window_and_their_ends_are_kept() -> None:
    def answers(text: str) -> str:
        return "short answer" if "Attempt" in text else "0123456789" * 60 + "END"

    model = model_of(answers, context_tokens=2000)
    thought = thought_of("a2r", model, width=3, answer_tokens=100)
    final = model.spell(model.requests[-1].prompt_token_ids)
    assert final.count("END\n```") == 3
    assert len(final) < 1900
    assert thought.answer == "short answer"


def test_attempts_that_fail_are_left_out() -> None:
    down = TokenReply(error=ModelUnavailable("down"))
    replies: Iterator[str | TokenReply] = iter([down, "fine", down, down, "so fine"])
    model = model_of(lambda _: next(replies))
    thought = thought_of("a2r", model, width=2)
    assert thought.tree is not None
    assert [child.state.value for child in thought.tree.forks[0].children] == ["failed", "done"]
    final = model.spell(model.requests[-1].prompt_token_ids)
    assert "Attempt 2:" in final
    assert "Attempt 1:" not in final
    assert thought.answer == "so fine"


def test_it_needs_a_path() -> None:
    with pytest.raises(BuildError, match="paths must be at least 1"):
        make_strategy("a2r", TokenModel(lambda *_: ""), ThinkOptions(settings={"paths": 0}))
