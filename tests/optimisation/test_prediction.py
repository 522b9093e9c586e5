"""Predicted wall times against those of real runs, on a clock of its own."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import pytest

import weft
from tests.optimisation.edits.flows import TEXT
from weft.optimisation.edits import Fuse, Hoist, InsertRevise, Parallelise, Patch, SetPrompt
from weft.optimisation.prediction import WallPrediction, predict
from weft.optimisation.table import OutcomeTable
from weft.testing import FakeClock, FakeModel, Reply

CANDIDATES = (
    Patch(),
    Patch((SetPrompt(node="rating", prompt="Rate {{ topic }}"),)),
    Patch((Parallelise(node="rating"), Fuse(node="short", first="notes"))),
    Patch((Hoist(node="notes/intro"),)),
    Patch((InsertRevise(node="answer", prompt="Better: {{ answer }}"),)),
)


def slow(scale: float = 1.0) -> FakeModel:
    """Takes a time that depends on what it is asked, from 1 to 9 seconds."""

    def reply(request: object) -> Reply:
        asked = request.messages[-1].content  # type: ignore[attr-defined]
        seconds = 1 + sha256(asked.encode()).digest()[0] % 9
        typed = request.schema is not None  # type: ignore[attr-defined]
        text = '{"answer": "yes", "why": "so"}' if typed else f"<{asked}>"
        return Reply(text, first_token_s=seconds * scale)

    return FakeModel(reply)


def real(flow: weft.Flow, workers: int, limits: Mapping[str, int]) -> float:
    clock = FakeClock()
    run = flow.run(
        topic="x", models={"small": slow()}, clock=clock, concurrency=workers, limits=limits
    )
    return clock.run(run).wall_s


def predicted(
    table: OutcomeTable, flow: weft.Flow, workers: int, limits: Mapping[str, int]
) -> WallPrediction:
    clock = FakeClock()
    inputs, models = {"topic": "x"}, {"small": slow()}
    return clock.run(
        predict(flow, inputs, table, workers=workers, limits=limits, models=models, clock=clock)
    )


@pytest.mark.parametrize("limits", [{}, {"small": 1}, {"small": 2}])
@pytest.mark.parametrize("workers", [1, 2, 8])
def test_a_candidate_takes_as_long_as_predicted(workers: int, limits: Mapping[str, int]) -> None:
    table, flow = OutcomeTable(), weft.loads(TEXT)
    for patch in CANDIDATES:
        candidate = patch.apply(flow)
        predicted(table, candidate, 8, {})  # evaluated with many slots
        found = predicted(table, candidate, workers, limits)
        assert found.computed == 0
        assert found.wall_s == pytest.approx(real(candidate, workers, limits), rel=0.02)


def test_what_the_table_lacks_is_run_first() -> None:
    table, flow = OutcomeTable(), weft.loads(TEXT)
    assert predicted(table, flow, 8, {}).computed == 7
    assert predicted(table, flow, 8, {}).computed == 0
