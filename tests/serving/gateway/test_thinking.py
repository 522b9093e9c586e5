"""What clients get of models that think: cut thoughts, empty answers, thoughts switched off."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.serving.gateway.gateway_server import House, with_house
from tests.serving.gateway.test_answers import Player
from weft.core.errors import ReasoningError
from weft.core.ports import Capabilities, ReasoningDelta
from weft.core.values import Completion
from weft.serving.gateway import ServedModel


class Thinker(Player):
    """A model whose thought can be switched off, and that has no field for it."""

    async def capabilities(self) -> Capabilities:
        return Capabilities(thinking=True)


EMPTY = (ReasoningDelta("Hm."), Completion("", reasoning="Hm."))


def test_a_complete_answer_without_text_is_an_error() -> None:
    async def body(house: House) -> None:
        answer = await house.chat()
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "bad_output")

    with_house(body, Player(*EMPTY))


def test_the_last_event_of_a_stream_without_text_is_an_error() -> None:
    async def body(house: House) -> None:
        answer = await house.chat(stream=True)
        *_, last = [line for line in answer.text.split("\n") if line.startswith("data: ")]
        assert json.loads(last.removeprefix("data: "))["error"]["code"] == "bad_output"

    with_house(body, Player(*EMPTY))


@pytest.mark.parametrize(
    "last",
    [
        Completion("", "length", reasoning="Hm."),
        Completion("", "stop", stop="END"),
        Completion("", "refused"),
    ],
)
def test_an_empty_answer_that_says_why_is_passed_on(last: Completion) -> None:
    async def body(house: House) -> None:
        answer = await house.chat()
        assert answer.status_code == 200
        (choice,) = answer.json()["choices"]
        names = {"refused": "content_filter"}
        assert choice["finish_reason"] == names.get(last.finish_reason, last.finish_reason)
        assert choice["message"].get("reasoning_content", "") == last.reasoning

    with_house(body, Player(last))


def test_a_workflow_decides_itself_what_is_empty() -> None:
    async def body(house: House) -> None:
        assert (await house.chat()).status_code == 200

    with_house(body, ServedModel("fake", Player(*EMPTY), runs=True))


def test_a_workflow_whose_thought_was_cut_says_what_to_raise() -> None:
    async def body(house: House) -> None:
        answer = await house.chat()
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (422, "no_answer")
        assert "raise max_tokens" in error["message"]

    failing = Player(ReasoningError("the answer is cut off"))
    with_house(body, ServedModel("fake", failing, runs=True))


def test_no_effort_switches_the_thought_of_any_model_off_that_can() -> None:
    model = Thinker(Completion("Yes."))

    async def body(house: House) -> None:
        assert (await house.chat(reasoning_effort="none")).status_code == 200
        assert (await house.chat()).status_code == 200

    with_house(body, model)
    off, own = model.asked
    assert (off.sampling.thinking_tokens, dict(off.extra)) == (0, {})
    assert own.sampling.thinking_tokens is None


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (Player(Completion("Yes.")), {"reasoning_effort": "none"}),
        (Thinker(Completion("Yes.")), {"reasoning_effort": "low"}),
        (Thinker(Completion("Yes.")), {"chat_template_kwargs": {"enable_thinking": False}}),
        (ServedModel("fake", Thinker(Completion("Yes.")), runs=True), {"reasoning_effort": "none"}),
    ],
)
def test_what_a_model_cannot_do_is_refused_by_name(model: Any, fields: dict[str, Any]) -> None:
    async def body(house: House) -> None:
        answer = await house.chat(**fields)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, next(iter(fields)))

    with_house(body, model)
