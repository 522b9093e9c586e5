"""The evaluation of rehearsals: what it leaves out, what it counts, and its aim."""

from __future__ import annotations

import asyncio
import random

import pytest

from evals.rehearsal import SYSTEMS, WAY, ForgetfulModel, errands, plan_text, rows_of, run_errand
from weft.core.ports.model import ModelRequest
from weft.core.values import Message
from weft.planner.text.reader import read


def forgetful(share: float, droppable: frozenset[str] | None, number: int = 0) -> ForgetfulModel:
    return ForgetfulModel(errands()[number], share, droppable, random.Random("1"))


def written(model: ForgetfulModel) -> list[str]:
    request = ModelRequest((Message("system", "You write a plan"), Message("user", "q")))
    text = model.reply(request)
    assert isinstance(text, str)
    return [step.tool for step in read(text).steps]


def test_a_share_of_the_steps_is_left_out() -> None:
    whole = written(forgetful(0.0, frozenset()))
    assert "grasp" in whole
    half = written(forgetful(0.5, None))
    assert len(half) == len(whole) - round(0.5 * len(whole))
    way = written(forgetful(1.0, WAY))
    assert way == [tool for tool in whole if tool not in WAY]


def test_a_plan_begins_with_the_number_that_is_asked_for() -> None:
    assert plan_text([("goto", {"room": "a"}), ("wash", {"thing": "b"})], 4) == (
        '4. goto(room="a")\n5. wash(thing="b") after $4\n6. join()\n'
    )


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_complete_plan_is_carried_out_by_every_system(system: str) -> None:
    model = ForgetfulModel(errands()[1], 0.0, frozenset(), random.Random("1"))
    found = asyncio.run(run_errand(errands()[1], system, model))
    assert (found.executable, found.first_done, found.done) == (True, True, True)
    assert (found.planned, found.joined, found.refused, found.inserted) == (1, 1, 0, 0)


def test_plans_run_after_the_rehearsal_and_no_call_is_refused() -> None:
    rows = asyncio.run(rows_of(errands()[2:40:9], [3]))
    found = {(row.case, row.system, row.metric): row.value or 0.0 for row in rows}
    for case in ("way_30%", "any_30%"):
        assert found[case, "as_written", "executable"] < 0.5
        for system in ("rehearsed", "with_goals"):
            assert found[case, system, "executable"] >= 0.95
            assert found[case, system, "refused_calls"] == 0
    assert found["any_50%", "with_goals", "done_by_first_plan"] >= 0.95
