"""The section `skills`: gold is perfect, each planted error shows in its own row and no other."""

from __future__ import annotations

import argparse
import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evals.engine.rows import Lookup, Row
from evals.planning import sections
from evals.planning.effort import FULL, QUICK, Skipped
from evals.planning.skills import evaluation
from evals.planning.skills.case import Answer, SkillCase, abstained
from evals.planning.skills.evaluation import grade, rows_of, run, skills
from evals.planning.skills.options import SkillOptions, add_arguments, options_of
from evals.planning.skills.planted import PLANTED
from evals.planning.skills.solvers import ModelSolver, ScriptedSolver
from weft.core.errors import ModelRequestError
from weft.core.ports import ModelRequest
from weft.planner.text.reader import read
from weft.testing import FakeModel

TASKS = ("names", "parameters", "parallel", "chained", "nested", "next_best", "response")
BFCL = ("bfcl_simple", "bfcl_parallel", "bfcl_parallel_multiple", "bfcl_irrelevance")


def _figures(*systems: str) -> Mapping[tuple[str, str], float]:
    """The main metric of every row, by case and system, as a share."""
    main = {skill.name: (skill.metric, 100.0 if skill.unit == "%" else 1.0) for skill in skills()}
    figures = Lookup(asyncio.run(run(FULL, SkillOptions(systems))))
    found = {}
    for case, (metric, whole) in main.items():
        for system in systems:
            value = figures(case, system, metric)
            assert value is not None
            found[case, system] = value / whole
    return found


@pytest.mark.usefixtures("samples")
def test_gold_is_perfect_in_every_row() -> None:
    found = _figures("gold")
    assert {case for case, _ in found} == {*TASKS, *BFCL}
    assert set(found.values()) == {1.0}


@pytest.mark.usefixtures("samples")
@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_error_lowers_its_own_row_only(kind: str) -> None:
    lower = {case for (case, _), value in _figures(f"planted:{kind}").items() if value < 1.0}
    assert lower == set(PLANTED[kind].tasks)


def test_every_skill_has_a_planted_error() -> None:
    assert {error.tasks[0] for error in PLANTED.values()} == set(TASKS)
    assert len(PLANTED) == len(TASKS)


@pytest.mark.usefixtures("samples")
@pytest.mark.parametrize(
    ("kind", "lower"),
    [
        ("distractor_name", {"names.set_f1", "chained.full_match"}),
        ("lost_reference", {"chained.full_match", "nested.edges_f1"}),
        ("wrong_order", {"chained.full_match", "chained.order", "nested.edges_f1"}),
    ],
)
def test_metrics_of_the_same_plans_see_different_errors(kind: str, lower: set[str]) -> None:
    """The error is planted in all answers: names, order and references are told apart."""
    found = [skill for skill in skills() if skill.name in {"names", "chained", "nested"}]
    solver = ScriptedSolver(lambda _, case: PLANTED[kind].spoil(case))
    rows = asyncio.run(rows_of(solver, "all", found, 10))
    metrics = {"set_f1", "full_match", "order", "edges_f1"}
    below = {
        f"{row.case}.{row.metric}"
        for row in rows
        if row.metric in metrics and (row.value or 0.0) < 1.0
    }
    assert below == lower


@pytest.mark.usefixtures("samples")
def test_a_wrong_value_is_no_wrong_slot() -> None:
    figures = Lookup(asyncio.run(run(FULL, SkillOptions(("planted:wrong_value",)))))
    assert figures("parameters", "planted:wrong_value", "slots_f1") == 1.0
    assert figures("parameters", "planted:wrong_value", "values_f1") == 0.5  # one of two


@pytest.mark.usefixtures("samples")
def test_eager_calls_and_invented_facts_are_counted_apart() -> None:
    systems = ("planted:eager_call", "planted:invented_fact")
    figures = Lookup(asyncio.run(run(FULL, SkillOptions(systems))))
    assert figures("next_best", systems[0], "abstains") == 0.0
    assert figures("next_best", systems[0], "arguments_f1") == 1.0
    assert figures("response", systems[1], "told_facts") == 1.0
    assert figures("response", systems[1], "unsupported_facts") == 2.0
    assert figures("response", systems[1], "facts") == 0.6  # 3 of 3 told, 2 invented


@pytest.mark.usefixtures("samples")
def test_what_is_left_out_is_counted() -> None:
    left_out = {skill.name: (len(skill.cases), skill.left_out) for skill in skills()}
    assert left_out["response"] == (1, 2)  # "success" has no facts; the other reply invents some
    assert left_out["next_best"] == (5, 0)
    assert left_out["names"] == (1, 0)


def _case(skill: str, place: int = 0) -> SkillCase:
    return next(one for one in skills() if one.name == skill).cases[place]


@pytest.mark.usefixtures("samples")
def test_repeating_the_dialogue_is_worth_nothing() -> None:
    case = _case("response")
    told = "It is T4711, at Kettle, for 5.20."
    echo = "I want tea, please. Which sort, and how many cups? Two cups of Assam."
    assert grade(case, Answer(text=told))["facts"] == 1.0
    assert grade(case, Answer(text=f"{told} {echo}"))["facts"] == 0.0
    assert grade(case, Answer(text=f"{told} {echo}"))["echoed"] == 1.0
    assert grade(case, Answer(text=""))["facts"] == 0.0


@pytest.mark.usefixtures("samples")
def test_abstaining_is_a_decision_and_an_empty_answer_is_none() -> None:
    tools = _case("bfcl_irrelevance").tools
    assert abstained(Answer(plan=read("1. join()\n")), tools)
    assert abstained(Answer(text="No function fits.", error="no_join"), tools)
    assert not abstained(Answer(text=" \n", error="no_join"), tools)
    assert not abstained(Answer(text="shape.area (side=", error="syntax"), tools)
    assert not abstained(Answer(text="no", error="ModelRequestError", failed=True), tools)


@pytest.mark.usefixtures("samples")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(max_size=80)
    | st.sampled_from(
        [
            '1. rain(city={"a": [1]}, days=[[]])\n2. join()\n',
            "1. rain(city=null)\n2. rain(city=$1)\n3. join($2)\n",
            '1. OrderTea(sort="a") if 1 > 2\n2. join()\n',
            '1. respond(text="") for each $1\n2. join()\n',
            "1. join(" + "[" * 3000,
            "1. rain(city=" + "[" * 3000 + "]" * 3000 + ")\n2. join()\n",
            '1. rain(city="Oslo")\n' * 200,
            "\ud800 1. join()",
            "",
        ]
    )
)
def test_no_model_output_raises(text: str) -> None:
    found = skills()
    rows = asyncio.run(rows_of(ScriptedSolver(lambda *_: text), "hostile", found, 1))
    shares = [row.value for row in rows if row.unit == "share" and row.value is not None]
    assert all(0.0 <= value <= 1.0 for value in shares)


@pytest.mark.usefixtures("samples")
def test_a_model_is_asked_free_and_constrained_and_equal_questions_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gold = {case.question: case.gold for skill in skills() for case in skill.cases}

    def answer(request: ModelRequest) -> str:
        asked = request.messages[-1].content
        found = next(text for question, text in gold.items() if question in asked)
        return found if "respond" not in asked else f'1. respond(text="{found}")\n2. join()\n'

    model = FakeModel(answer, model="fake")

    class Fakes:
        async def __aenter__(self) -> Fakes:
            return self

        async def __aexit__(self, *_: object) -> None:
            pass

        def of(self, declared: object) -> FakeModel:
            assert declared == "local:tiny"
            return model

    monkeypatch.setattr(evaluation, "Models", Fakes)
    figures = Lookup(asyncio.run(run(FULL, SkillOptions(("local:tiny",)))))
    for system in ("tiny", "tiny, free"):
        assert figures("bfcl_simple", system, "ast_match") == 100.0
        assert figures("chained", system, "full_match") == 1.0
        assert figures("response", system, "facts") == 1.0
    cases = sum(len(one.cases) for one in skills())
    again = len(_skill_cases("parallel")) + 2 * len(_skill_cases("nested"))
    assert len({request.messages for request in model.requests}) <= 2 * (cases - again)


def _skill_cases(name: str) -> list[str]:
    return [case.id for skill in skills() if skill.name == name for case in skill.cases]


@pytest.mark.usefixtures("samples")
def test_requests_that_fail_are_no_figures() -> None:
    def refuse(request: ModelRequest) -> str:
        raise ModelRequestError("the server is gone")

    solver = ModelSolver(FakeModel(refuse), "never")
    with pytest.raises(Skipped, match="every request failed"):
        asyncio.run(rows_of(solver, "gone", skills(), 1))


def test_without_data_the_section_says_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_DATA", str(tmp_path))
    with pytest.raises(Skipped, match="set WEFT_DATA"):
        asyncio.run(run(QUICK))


def test_a_missing_folder_is_named(samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(samples / "programs")
    rows = asyncio.run(sections.rows_of(("skills",), QUICK, skills=SkillOptions()))
    missing = samples / "programs" / "apibank"
    hint = "set WEFT_DATA to the folder that holds programs/apibank"
    assert [row.metric for row in rows] == [f"skipped: there is no data at {missing}: {hint}"]
    assert "skills is skipped" in capsys.readouterr().err


@pytest.mark.usefixtures("samples")
def test_limits_are_nested_and_take_every_stratum() -> None:
    found = {skill.name: skill for skill in skills()}
    assert {case.abstains for case in found["next_best"].some(2)} == {True, False}
    few, more = (found["next_best"].some(limit) for limit in (2, 4))
    assert {case.id for case in few} <= {case.id for case in more}
    assert len(found["bfcl_irrelevance"].some(1)) == 1


def test_the_command_line_refuses_unknown_errors() -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(parser)
    asked = parser.parse_args(["--model", "gold,local:tiny", "--limit", "3"])
    options = options_of(asked)
    assert options == SkillOptions(("gold", "local:tiny"), "", 3)
    assert [options.label(one) for one in options.systems] == ["gold", "tiny"]
    for wrong in (["--model", "planted:typo"], ["--limit", "0"], ["--model", "gold,"]):
        with pytest.raises((argparse.ArgumentError, ValueError)):
            parser.parse_args(wrong)


def test_a_server_is_declared_by_its_address() -> None:
    served = SkillOptions(("org/big",), "http://127.0.0.1:9/v1")
    assert served.declared("org/big") == {
        "use": "openai",
        "model": "org/big",
        "base_url": "http://127.0.0.1:9/v1",
    }
    assert served.label("org/big") == "org/big"
    assert SkillOptions().declared("tiny") == "local:tiny"


@pytest.mark.usefixtures("planner_data")
def test_gold_is_perfect_on_the_public_sets() -> None:
    rows: list[Row] = asyncio.run(run(FULL, SkillOptions(("gold",), limit=12)))
    main = {(skill.name, skill.metric): skill.unit for skill in skills()}
    for row in rows:
        if unit := main.get((row.case, row.metric)):
            assert row.value == (100.0 if unit == "%" else 1.0), row
