"""A question from the front door, over a scripted model and the tools of the example."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft
from weft.core.errors import AgentError, BuildError
from weft.core.ports import Capabilities
from weft.testing import FakeClock, FakeModel
from weft.testing.model import Reply
from weft.workflow.apps.ask import plan_as_yaml
from weft.workflow.apps.tool_sources import ToolSources
from weft.workflow.runtime.options import AskSettings

TOOLS = Path(__file__).parents[3] / "examples" / "ask" / "tools.py"
QUESTION = "How many people live in Rome and Berlin together?"
PLAN = """\
1. city(name="Rome")
2. city(name="Berlin")
3. total(numbers=[$1.people, $2.people])
4. join($3)
"""
FINISH = '{"thought": "the sum", "decision": "finish", "answer": "6,531,000"}'


def model(*replies: str | Reply) -> FakeModel:
    return FakeModel(replies, capabilities=Capabilities(structured_output=True))


def answered(script: FakeModel, **given: object) -> weft.Answer:
    clock = FakeClock()

    async def asking() -> weft.Answer:
        settings = AskSettings(clock=clock, **given)  # type: ignore[arg-type]
        return await weft.ask(QUESTION, tools=[TOOLS], model=script, settings=settings)

    return clock.run(asking())


def test_the_plan_runs_and_the_model_concludes() -> None:
    answer = answered(model(PLAN, FINISH))
    assert answer.value == "6,531,000"
    assert [call.tool for call in answer.calls] == ["city", "city", "total"]
    assert answer.calls[2].arguments == {"numbers": [2_749_000, 3_782_000]}
    assert answer.rounds == 1


def test_a_plan_that_worked_is_saved_and_runs_again(tmp_path: Path) -> None:
    answer = answered(model(PLAN, FINISH))
    (tmp_path / "tools.py").write_text(TOOLS.read_text())
    sources = ToolSources([tmp_path / "tools.py"])
    text = plan_as_yaml(QUESTION, answer, sources, tmp_path, "local:smollm2-135m-instruct")
    (tmp_path / "plan.yaml").write_text(text)
    flow = weft.load(tmp_path / "plan.yaml")
    flow.check()
    script = FakeModel(["about six and a half million"])
    result = flow.run_sync({}, models=dict.fromkeys(flow.document.models, script))
    assert result.ok, result.reasons
    assert "6531000" in script.requests[0].messages[-1].content


def test_the_budget_of_the_run_ends_it_with_a_reason() -> None:
    with pytest.raises(AgentError, match="token"):
        answered(model(PLAN, FINISH), budget=weft.Budget(tokens=5))


def test_what_cannot_be_asked_is_refused_before_anything_runs() -> None:
    script = model(PLAN)
    with pytest.raises(BuildError, match="question is empty"):
        weft.ask_sync("  ", model=script)
    with pytest.raises(BuildError, match="no agent 'fast'"):
        weft.ask_sync(QUESTION, model=script, agent="fast")
    with pytest.raises(BuildError, match="expected local:NAME"):
        weft.ask_sync(QUESTION, model="qwen")
    assert not script.requests


def test_agents_without_a_plan_save_nothing() -> None:
    with pytest.raises(BuildError, match="writes no plan"):
        plan_as_yaml(QUESTION, weft.Answer("x"), ToolSources([]), Path(), "local:any")


def test_the_example_has_tools() -> None:
    specs = ToolSources([TOOLS]).runner.specs()
    assert [spec.name for spec in specs] == ["city", "cities_of", "largest", "total"]
    assert all(spec.pure and spec.description for spec in specs)
