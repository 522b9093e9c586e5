"""The scripted model writes what it should, when it should, and counts what it writes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.planning.orchestration.model import ScriptedModel
from evals.planning.orchestration.script import Style, Turn, script
from evals.planning.orchestration.setting import Speed
from evals.planning.orchestration.task import Call, levels, work_out
from evals.planning.orchestration.thought import thought
from evals.planning.orchestration.tokens import count, split
from tests.evals.planning.tasks import DIAMOND
from weft.core.errors import ModelRequestError
from weft.core.ports import ModelRequest, complete
from weft.core.values import Completion, Message, ToolSpec
from weft.planner.text.reader import read
from weft.testing import FakeClock

_SPEED = Speed(0.5, 0.1)
_ASKED = ModelRequest((Message("user", "What is it?"),))
_CALLS = (Call(1, "search", {"query": "tea"}, ""), Call(2, "search", {"query": "ice"}, ""))


@given(st.text())
def test_tokens_joined_are_the_text(text: str) -> None:
    assert "".join(split(text)) == text


@pytest.mark.parametrize("tokens", [0, 1, 7, 25, 300])
def test_a_thought_has_the_length_asked_for_and_is_one_line(tokens: int) -> None:
    assert count(thought(tokens)) == tokens
    assert "\n" not in thought(tokens)


def test_the_first_token_takes_longer_and_all_are_counted() -> None:
    model = ScriptedModel([Turn("one two three"), Turn("x")], _SPEED)
    clock = FakeClock()

    async def main() -> Completion:
        return await complete(model, _ASKED)

    completion = clock.run(main())
    assert completion.text == "one two three"
    assert clock.now() == pytest.approx(0.5 + 2 * 0.1)
    assert (model.usage.completion_tokens, model.usage.requests) == (3, 1)
    assert model.usage.prompt_tokens == count("What is it?")


def test_a_planner_can_fall_silent_between_two_lines() -> None:
    model = ScriptedModel([Turn("a\nb\nc", stall_after=2, stall_s=2.0)], _SPEED)
    clock = FakeClock()
    clock.run(complete(model, _ASKED))
    assert clock.now() == pytest.approx(0.5 + 4 * 0.1 + 2.0)


def test_a_script_that_ends_is_an_error_and_no_repetition() -> None:
    model = ScriptedModel([], _SPEED)
    with pytest.raises(ModelRequestError, match="no further turn"):
        FakeClock().run(complete(model, _ASKED))


def test_an_unfinished_answer_is_continued_line_by_line() -> None:
    model = ScriptedModel([Turn("first\n# hm\nsecond\n")], _SPEED, continuation=True)

    async def main() -> list[str]:
        first = (await complete(model, _ASKED)).text
        begun = ModelRequest((*_ASKED.messages, Message("assistant", "first\n")))
        return [first, (await complete(model, begun)).text]

    assert FakeClock().run(main()) == ["first\n", "# hm\nsecond\n"]


def test_calls_are_written_as_the_request_wants_them() -> None:
    turn = Turn(thought="hm", calls=_CALLS)
    lines = turn.spoken(_ASKED).split("\n")
    assert lines[0] == "Thought: hm"
    assert json.loads(lines[1].removeprefix("Call: ")) == {
        "name": "search",
        "arguments": {"query": "tea"},
    }
    many: dict[str, object] = {"properties": {"calls": {}}}
    as_json = json.loads(turn.spoken(ModelRequest(_ASKED.messages, schema=many)))
    assert [call["name"] for call in as_json["next"]["calls"]] == ["search", "search"]
    native = ModelRequest(_ASKED.messages, tools=(ToolSpec("search", "", {}),))
    assert turn.spoken(native) == "hm"
    assert [call.arguments for call in turn.called(native)] == [
        '{"query": "tea"}',
        '{"query": "ice"}',
    ]


def test_native_calls_take_the_time_of_their_tokens() -> None:
    native = ModelRequest(_ASKED.messages, tools=(ToolSpec("search", "", {}),))
    model = ScriptedModel([Turn(calls=_CALLS)], Speed(0.1, 0.1))
    clock = FakeClock()
    completion = clock.run(complete(model, native))
    assert completion.finish_reason == "tool_calls"
    assert clock.now() == pytest.approx(0.1 * completion.usage.completion_tokens)
    assert completion.usage.completion_tokens > 20


def test_scripts_of_all_ways_make_the_calls_of_the_gold_plan() -> None:
    style = Style(calls=5, answer=5)
    plan, last = script(DIAMOND, "plan", style)
    assert read(plan.text) == DIAMOND.plan
    assert last.answer == DIAMOND.answer
    turns = script(DIAMOND, "turns", style)
    assert [len(turn.calls) for turn in turns] == [1, 1, 1, 1, 0]
    rounds = script(DIAMOND, "rounds", style)
    assert [len(turn.calls) for turn in rounds] == [1, 2, 1, 0]
    made = [call for turn in rounds for call in turn.calls]
    assert [call.arguments for call in made] == [call.arguments for call in work_out(DIAMOND)]
    assert made[-1].arguments == {"of": ["a+1", "a+2"]}


def test_plans_can_have_thoughts_which_change_nothing_else() -> None:
    text = script(DIAMOND, "plan", Style(5, 5, plan=10, join=6))[0].text
    thoughtful = read(text)
    assert count(thoughtful.steps[0].thought) == 10
    assert count(thoughtful.thought) == 6
    assert [step.arguments for step in thoughtful.steps] == [
        step.arguments for step in DIAMOND.plan.steps
    ]


def test_the_published_spelling_is_shorter_and_says_the_same() -> None:
    style = Style(5, 5, published=(4, 3))
    text = script(DIAMOND, "published", style)[0].text
    specs = [tool.spec for tool in DIAMOND.tools]
    plan = read(text, specs)
    assert [step.arguments for step in plan.steps] == [
        step.arguments for step in DIAMOND.plan.steps
    ]
    assert text.startswith(f"Thought: {thought(4)}\n1. echo(")
    assert "of=" not in text
    assert text.endswith(f"Thought: {thought(3)}\n5. join()\n")
    usual = script(DIAMOND, "plan", Style(5, 5, plan=4, join=3))[0].text
    assert count(text) < count(usual)


def test_levels_are_as_early_as_the_needs_allow() -> None:
    assert levels(DIAMOND.plan.steps) == [[1], [2, 3], [4]]
