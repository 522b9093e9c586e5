"""The lean baseline: its transcript, what it reads, and that it knows no more than the others."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.planning.orchestration import react_text
from evals.planning.orchestration.measuring import in_virtual_time
from evals.planning.orchestration.model import ScriptedModel
from evals.planning.orchestration.passages import search
from evals.planning.orchestration.react_text import (
    Action,
    Answer,
    ReactText,
    read_arguments,
    read_turn,
    write_action,
)
from evals.planning.orchestration.script import Style, script
from evals.planning.orchestration.setting import SPEEDS, Setting
from evals.planning.orchestration.sweeps import THINKING, settings
from evals.planning.orchestration.task import Task, work_out
from evals.planning.orchestration.thought import thought
from evals.planning.orchestration.tokens import count
from evals.planning.orchestration.tools import CannedTools
from tests.evals.planning.tasks import DIAMOND
from weft.core.errors import ModelOutputError
from weft.core.values import ToolSpec
from weft.planner.plan import Plan, PlanStep, Ref
from weft.planner.text.reader import read
from weft.testing import FakeClock, FakeModel

_TWO = Task(
    "two",
    "Which is older?",
    Plan(
        (PlanStep(1, "search", {"query": "Ann"}), PlanStep(2, "search", {"query": "Bo [II]"})),
        (Ref(1), Ref(2)),
    ),
    (search(),),
    "Ann",
)
_ONE = ToolSpec("one", "", {"properties": {"a": {}, "b": {}}, "required": ["a"]})
_OPEN = ToolSpec("any", "", {"type": "object"})


def _run(agent: ReactText, question: str = "What is it?") -> str:
    return FakeClock().run(agent.run(question))


def _scripted(task: Task, style: Style) -> ReactText:
    model = ScriptedModel(script(task, "text", style), SPEEDS["medium"])
    return ReactText(model, CannedTools(task.tools))


def test_the_transcript_is_thought_action_observation() -> None:
    agent = _scripted(_TWO, Style(calls=3, answer=2))
    assert _run(agent, _TWO.question) == "Ann"
    prompt, rest = agent.transcript.split("Question: ")
    assert "search[query]: Looks the query up" in prompt
    first, second = (json.dumps(call.result) for call in work_out(_TWO))
    assert rest == (
        "Which is older?\n"
        f"Thought: {thought(3)}\nAction: search[Ann]\nObservation: {first}\n"
        f"Thought: {thought(3)}\nAction: search[Bo [II]]\nObservation: {second}\n"
    )


def test_it_writes_fewer_tokens_than_the_agent_that_spells_calls_as_json() -> None:
    setting = Setting(SPEEDS["medium"], Style(calls=10, answer=10))
    runs = in_virtual_time(("react", "react_text"), [_TWO, DIAMOND], setting)
    for lean, usual in zip(runs["react_text"], runs["react"], strict=True):
        assert lean.tool_calls == usual.tool_calls
        assert lean.model_calls == usual.model_calls
        assert lean.completion_tokens < usual.completion_tokens


def test_it_reads_arguments_by_the_schema_and_never_by_the_gold_plan() -> None:
    assert "plan" not in inspect.signature(ReactText).parameters
    assert not {"Task", "Plan", "work_out"} & set(vars(react_text))


@pytest.mark.parametrize(
    ("text", "turn"),
    [
        ("Thought: hm\nAction: search[tea]", Action("search", "tea")),
        ("Action: search[tea [hot]]\n", Action("search", "tea [hot]")),
        ('Action: add[{"of": [1, 2]}]', Action("add", '{"of": [1, 2]}')),
        ("Thought: hm\nAnswer: 42", Answer("42")),
        ("Thought: hm\nAction: Finish[42]", Answer("42")),
        ("Thought: I could write Action: search[tea] here", None),
        ("", None),
    ],
)
def test_turns_are_read(text: str, turn: Action | Answer | None) -> None:
    assert read_turn(text) == turn


@given(
    st.sampled_from([_ONE, _OPEN]),
    st.dictionaries(st.sampled_from("ab"), st.text() | st.integers() | st.lists(st.booleans())),
)
def test_a_written_action_is_read_back(spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
    turn = read_turn(f"Thought: x\n{write_action(spec.name, arguments, spec)}")
    assert isinstance(turn, Action)
    assert turn.tool == spec.name
    assert read_arguments(turn, spec) == arguments


def test_what_goes_wrong_is_an_observation() -> None:
    model = FakeModel(
        ["hm", "Action: nothing[x]", "Action: echo[x]", "Action: echo[{x]", "Answer: done"]
    )
    agent = ReactText(model, CannedTools(DIAMOND.tools))
    assert _run(agent) == "done"
    observed = [line for line in agent.transcript.splitlines() if line.startswith("Observation: ")]
    assert observed == [
        "Observation: write `Action: tool[argument]` or `Answer: ...`",
        "Observation: there is no tool nothing; there are: echo",
        "Observation: the call failed: echo takes its arguments as one JSON object",
        observed[3],
    ]
    assert observed[3].startswith("Observation: the call failed: the arguments are not JSON")
    assert all(request.sampling.stop == ("\nObservation:",) for request in model.requests)


def test_it_ends_without_an_answer() -> None:
    agent = ReactText(FakeModel(lambda _: "hm"), CannedTools(DIAMOND.tools), turns=3)
    with pytest.raises(ModelOutputError, match="no answer in 3 turns"):
        _run(agent)


def test_a_planner_can_think_as_much_as_react() -> None:
    """Both cases write the baseline's tokens of thought, all told."""
    usual = Setting(SPEEDS["medium"], Style(calls=7, answer=5))
    found = dict(settings("movie", usual))
    for name in THINKING:
        plan = read(script(DIAMOND, "plan", found[name].style)[0].text)
        thoughts = [count(step.thought) for step in plan.steps]
        assert sum(thoughts) == 7 * len(DIAMOND.plan.steps)
        assert thoughts == ([7] * 4 if name == THINKING[0] else [28, 0, 0, 0])
        turns = script(DIAMOND, "text", found[name].style)[:-1]
        said = [turn.text.partition("\n")[0].removeprefix("Thought: ") for turn in turns]
        assert [count(one) for one in said] == [7] * 4
