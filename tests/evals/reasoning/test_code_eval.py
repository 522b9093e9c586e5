"""The exercises, the scripted programmer and the figures of the code section are what they say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from evals.engine.rows import Row
from evals.planning.effort import QUICK
from evals.reasoning import code
from evals.reasoning.code import table
from evals.reasoning.code.coder import Coder, Skill
from evals.reasoning.code.exercises import EXERCISES, Exercise
from evals.reasoning.code.models import OPTIONS, Tried, rows_of, tried
from evals.reasoning.code.selecting import Choosing, Examiner
from tests.reasoning.code.sandbox_support import needs_protection
from weft.core.ports import ModelRequest
from weft.reasoning.code.problem import problem_of
from weft.reasoning.code.prompts import judge_messages
from weft.reasoning.code.sandbox.sandbox import CodeSandbox
from weft.reasoning.code.solver import ProgramDraft
from weft.reasoning.strategy import run_thought
from weft.testing import FakeModel

each = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)


def results(exercise: Exercise, program: str, inputs: Any) -> list[Any]:
    """What `program`, one of ours, gives for `inputs`."""
    found: list[Any] = []
    for given in inputs:
        names: dict[str, Any] = {}
        exec(program, names)
        try:
            found.append(names[exercise.name](*json.loads(json.dumps(given))))
        except Exception as error:
            found.append(type(error).__name__)
    return found


@each
def test_every_mistake_is_found_by_a_hidden_test(exercise: Exercise) -> None:
    right = results(exercise, exercise.right, exercise.hidden)
    assert right == [exercise.result(given) for given in exercise.hidden]
    assert len(exercise.wrong) == 4
    for wrong in exercise.wrong:
        assert results(exercise, wrong, exercise.hidden) != right


@each
def test_hidden_tests_are_none_of_the_public_ones(exercise: Exercise) -> None:
    assert not {json.dumps(given) for given in exercise.hidden} & {
        json.dumps(given) for given in exercise.public
    }
    assert len(problem_of(exercise.question()).tests) == len(exercise.public)


def test_most_mistakes_pass_the_public_tests() -> None:
    passing = [
        results(exercise, wrong, exercise.public) == [*map(exercise.result, exercise.public)]
        for exercise in EXERCISES
        for wrong in exercise.wrong
    ]
    assert 30 <= sum(passing) < len(passing) == 48


def test_the_programmer_errs_at_the_stated_rates() -> None:
    exercise = EXERCISES[0]
    right = [
        Coder(exercise, Skill(0.2), seed).programs(8).count(exercise.right) for seed in range(200)
    ]
    assert 0.17 < sum(right) / 1600 < 0.23
    assert Coder(exercise, Skill(0.2), 3).programs(8) == Coder(exercise, Skill(0.2), 3).programs(8)

    def judged(seed: int) -> bool:
        cases = [("[[[1, 2], [2, 3]]]", "7", "[[1, 3]]"), ("[[]]", "0", "[]")]
        asked = judge_messages(problem_of(exercise.question()), cases)
        return Coder(exercise, Skill(0.2), seed).answer(ModelRequest(asked)) == "Verdict: B"

    assert 0.7 < sum(map(judged, range(200))) / 200 < 0.9


@needs_protection
def test_a_sound_judge_finds_the_one_right_program() -> None:
    async def main() -> str:
        exercise = next(each for each in EXERCISES if each.name == "rotate")
        examiner = Examiner(exercise, CodeSandbox())
        programs = [exercise.wrong[2], exercise.wrong[2], exercise.right]
        assert [await examiner.right(program) for program in programs] == [False, False, True]
        drafts = [ProgramDraft(program, 0, 0, 9, program) for program in programs]
        samples = [draft.sample(index, 2) for index, draft in enumerate(drafts)]
        coder = Coder(exercise, Skill(1.0, judge=1.0), 0)
        made = Choosing(coder, examiner.bench, samples, "sstar")
        thought = await run_thought(made, examiner.question)
        assert thought.answer == exercise.right
        return thought.why

    assert "1 of 1 pairs won" in asyncio.run(main())


def real(system: str, programs: Sequence[str], exercise: Exercise) -> Tried:
    """What `system` makes of a model that writes `programs` and judges soundly."""
    coder = Coder(exercise, Skill(1.0, judge=1.0), 0)
    left = list(programs)

    def answer(request: ModelRequest) -> str:
        return f"```python\n{left.pop(0)}\n```" if left else coder.answer(request)

    model = FakeModel(answer)
    return asyncio.run(tried(model, exercise, CodeSandbox(), OPTIONS[system]))


@needs_protection
def test_what_is_called_s_star_mends_its_samples_and_the_majority_does_not() -> None:
    exercise = next(each for each in EXERCISES if each.name == "rotate")
    broken = f"def {exercise.name}(*_):\n    return None\n"
    assert real("majority", [broken] * 4, exercise).requests == 4
    mended = real("sstar", [*[broken] * 4, *[exercise.right] * 4], exercise)
    assert mended.requests == 8
    assert mended.right == mended.passing == 4


@needs_protection
def test_what_is_called_s_star_tells_programs_apart_by_inputs() -> None:
    exercise = next(each for each in EXERCISES if each.name == "rotate")
    programs = [exercise.wrong[2]] * 3 + [exercise.right]
    assert not real("majority", programs, exercise).chosen
    chosen = real("sstar", programs, exercise)
    assert chosen.chosen
    assert chosen.requests > 4


def test_rows_say_what_each_system_wrote_and_chose() -> None:
    one, other = Tried(4, 4, 1, True, 90, 9), Tried(2, 0, 0, False, 10, 4)
    found = {(row.system, row.metric): row.value for row in rows_of("m", {"sstar": [one, other]})}
    assert found["sstar", "accuracy"] == found["sstar", "oracle"] == 0.5
    assert found["sstar", "sample_accuracy"] == 1 / 8
    assert found["sstar", "requests"] == 6.5


def test_the_table_shows_every_way_to_choose_and_the_model() -> None:
    rows = [
        Row("right_40", "sstar", "accuracy", 0.75, "share"),
        Row("right_40", "sstar", "requests", 6.0, "calls"),
        Row("small code-1", "oracle", "accuracy", 0.0, "share"),
    ]
    shown = table(rows)
    assert "0.750 (6.0)" in shown
    assert "small code-1" in shown


@needs_protection
def test_the_section_puts_its_parts_together(monkeypatch: pytest.MonkeyPatch) -> None:
    async def choices(*_: object) -> list[Row]:
        values = {"sstar": 0.5, "majority": 0.25, "sieve_random": 0.125}
        return [Row("right_20", name, "accuracy", value, "share") for name, value in values.items()]

    async def model(*_: object) -> list[Row]:
        return [Row("small code-2", "", "skipped: none", None, "")]

    monkeypatch.setattr(code, "measure_choices", choices)
    monkeypatch.setattr(code, "measure_model", model)
    rows = asyncio.run(code.run(QUICK))
    found = {row.metric: row.value for row in rows if row.metric.startswith("accuracy_over")}
    assert found == {"accuracy_over_sieve_random": 0.375, "accuracy_over_majority": 0.25}
    assert rows[-1].metric == "skipped: none"
