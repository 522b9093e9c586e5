"""What the result of a study lists: tested finalists, and a cost that says something."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from tests.optimisation.studies import rows
from weft.core.ports import ModelRequest
from weft.optimisation.candidates import CaseOutcome
from weft.optimisation.objectives import COST, TOKENS, cost_of
from weft.optimisation.result import StudyResult
from weft.optimisation.study_options import StudyOptions
from weft.testing import FakeModel

FLOW = """\
name: guess
inputs: {question: string}
models: {small: {use: openai, model: none, base_url: "http://127.0.0.1:9/v1"}}
nodes:
  answer: {model: small, prompt: "Answer {{ question }}", temperature: 0}
outputs: {answer: "{{ answer }}"}
optimise:
  knobs:
    answer:
      prompt: ["Bait: {{ question }}", "Better: {{ question }}"]
      temperature: [0.5]
"""


def number_of(request: ModelRequest) -> int:
    return int(request.messages[-1].content.rpartition("q")[2])


def baited(request: ModelRequest) -> str:
    """The bait is right on all development cases (every fourth one), and on no other one. What is
    better on them is nearly as often worse as better on others.
    """
    number, text = number_of(request), request.messages[-1].content
    if text.startswith("Bait"):
        right = number % 4 == 0
    elif text.startswith("Better"):
        right = number % 5 == 0 or (number % 3 == 0 and number % 8 != 1)
    else:
        right = number % 3 == 0
    return f"a{number}" if right else "no"


def study(model: FakeModel, **settings: Any) -> StudyResult:
    given: dict[str, Any] = {"budget": 2_000, **settings}
    return weft.optimise_sync(
        weft.loads(FLOW), rows(120), "exact", models={"small": model}, **given
    )


def test_every_tested_finalist_is_in_the_front_with_what_the_test_showed() -> None:
    result = study(FakeModel(baited))
    assert (result.verdict.kind, result.verdict.looks) == ("not_shown", 1)
    tested = [each for each in result.front if each.figures[0].source == "held-out"]
    assert len(tested) == result.verdict.why.count("p ") == 2
    assert list(result.front[:2]) == tested, "before those of the search"
    changes = [each.figures[0].change for each in tested]
    assert changes == sorted(changes, reverse=True)
    assert changes[-1] < 0 < changes[0]
    assert {edit.knob for each in tested for edit in each.edits} >= {"answer.prompt"}


def wordy(request: ModelRequest) -> str:
    """Right always; two prompts of three get a long answer."""
    text = request.messages[-1].content
    return f"a{number_of(request)}" + " " * 40 * (not text.startswith("Better"))


def test_without_prices_cost_is_counted_in_tokens() -> None:
    result = study(FakeModel(wordy), goal="cost", keep={"quality": 0.1})
    assert result.improved, result.verdict.why
    assert "Better" in result.best.edits[0].label
    figure, before = result.best.figure("cost"), result.baseline.figure("tokens")
    assert figure is not None
    assert before is not None
    assert (figure.name, figure.value) == ("tokens", before.value + figure.change)  # type: ignore[operator]
    assert figure.change < 0


@pytest.mark.parametrize(("cost", "objective"), [(0.0, TOKENS), (0.01, COST)])
def test_the_workflow_as_it_is_decides_what_cost_is(cost: float, objective: object) -> None:
    outcomes = [CaseOutcome(1.0, cost=cost, tokens=30)] * 4
    assert cost_of(outcomes) == objective
    assert StudyOptions("cost").goal_for(outcomes).improve == objective
    kept = StudyOptions(keep={"cost": 0.2}).goal_for(outcomes).keep[0]
    assert (kept.unit, kept.margin) == (objective.unit, 0.2)  # type: ignore[attr-defined]
    limit = StudyOptions(keep={"cost_usd": 1.0}).goal_for(outcomes).keep[0]
    assert limit.unit == "usd"
