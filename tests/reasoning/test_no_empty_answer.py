"""No strategy comes to an empty answer, nor to one that is cut off without saying so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.reasoning.strategy_cases import Neighbours, cases, occasion
from weft.core.errors import ReasoningError
from weft.core.generated_text import is_blank, without_thought
from weft.core.ports import ModelRequest
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.strategies import make_strategy
from weft.reasoning.strategy import run_thought
from weft.reasoning.thought import Thought
from weft.testing import FakeModel, Reply
from weft.testing.token_model import TokenModel, TokenReply

OPTIONS: dict[str, Any] = {"width": 2, "rounds": 2, "max_tokens": 60, "budget": 2_000}
NEVER_ENDING = "so it goes on " * 500
SAYS = {
    "nothing": Reply(""),
    "blanks": Reply(" \n\t \n"),
    "nothing to see": Reply("\u200b\u2060"),
    "an open thought": Reply("<think>" + NEVER_ENDING),
    "thought alone": Reply("", reasoning=NEVER_ENDING),
    "no end": Reply(NEVER_ENDING),
}
HAS_NO_ANSWER = ("nothing", "blanks", "nothing to see", "thought alone")


def model(kind: str, reply: Reply) -> FakeModel | TokenModel:
    if kind == "chat":
        return FakeModel([reply])

    def script(_: Sequence[int], __: ModelRequest) -> TokenReply:
        return TokenReply(reply.text or (reply.reasoning and "<think>" + reply.reasoning))

    return Neighbours(script)


def thought(strategy: str, kind: str, says: str) -> Thought:
    """On the clock of the wall: some strategies start processes, for which no clock jumps."""
    case = occasion(strategy)
    options = ThinkOptions(**OPTIONS, settings=case.settings)
    question = Question(case.question, documents=case.documents)
    return asyncio.run(
        run_thought(make_strategy(strategy, model(kind, SAYS[says]), options), question)
    )


@pytest.mark.parametrize("says", SAYS)
@pytest.mark.parametrize(("strategy", "kind"), cases(), ids=str)
def test_a_model_without_an_answer(strategy: str, kind: str, says: str) -> None:
    try:
        found = thought(strategy, kind, says)
    except ReasoningError:
        return
    assert not is_blank(without_thought(found.answer))
    assert found.cut, found
    assert says not in HAS_NO_ANSWER or kind == "tokens"


@pytest.mark.parametrize("says", ["an open thought", "thought alone"])
@pytest.mark.parametrize(
    "strategy", ["direct", "sample", "best-of", "skeleton", "abstraction", "self-refine"]
)
def test_a_thought_that_takes_all_tokens_is_named_with_what_to_do(strategy: str, says: str) -> None:
    with pytest.raises(ReasoningError, match="spent on thought before it answered") as caught:
        thought(strategy, "chat", says)
    assert "raise max_tokens" in str(caught.value)
