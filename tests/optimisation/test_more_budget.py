"""A recorded study that is given more: it searches on, and measures nothing twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.optimisation.studies import flow, named, planted, rows
from weft.errors import InputError
from weft.optimisation.optimise import read_study, replay_study
from weft.optimisation.result import StudyResult
from weft.testing import FakeModel

CASES = 160
WHOLE = 3_000


def study(model: FakeModel, place: str, **settings: Any) -> StudyResult:
    return weft.optimise_sync(
        flow(), rows(CASES), "exact", models=named(model), journal=place, **settings
    )


def more(model: FakeModel, place: str, amount: object, run: str) -> StudyResult:
    return weft.optimise_sync(
        flow(), None, "exact", models=named(model), journal=place, resume=run, more=amount
    )


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "runs.sqlite")


@pytest.mark.parametrize("first", [40, 300])
def test_a_study_whose_budget_ended_it_finds_with_more_what_it_would_have_found(
    place: str, first: int
) -> None:
    model = planted()
    short = study(model, place, budget=first)
    assert not short.improved
    result = more(model, place, WHOLE - first, short.run)
    assert result.improved, result.verdict.why
    assert {edit.knob for edit in result.best.edits} == {"answer.prompt", "answer.schema_order"}
    assert result.spent.calls == len(model.requests) <= WHOLE
    asked = [request.sampling.seed for request in model.requests]
    texts = [request.messages[-1].content for request in model.requests]
    schemas = [str(request.schema) for request in model.requests]
    calls = list(zip(asked, texts, schemas, strict=True))
    assert len(set(calls)) == len(calls), "no call is made twice"
    assert result.budget["calls"] == WHOLE
    assert read_study(journal=place) == result


def test_it_keeps_its_larger_budget_when_it_is_interrupted_and_resumed(place: str) -> None:
    model = planted()
    short = study(model, place, budget=300)
    studies, left = list[Any](), [100]

    def stop_soon() -> None:
        left[0] -= 1
        if left[0] == 0:
            studies[0].stop()

    stopping = planted(on_call=stop_soon)
    stopped = weft.optimise_sync(
        flow(),
        None,
        "exact",
        models=named(stopping),
        journal=place,
        resume=short.run,
        more=2_700,
        watch=studies.append,
    )
    assert stopped.verdict.kind == "unfinished"
    rest = planted()
    result = weft.optimise_sync(
        flow(), None, "exact", models=named(rest), journal=place, resume=short.run
    )
    assert result.improved
    assert result.budget["calls"] == WHOLE
    total = sum(len(each.requests) for each in (model, stopping, rest))
    assert result.spent.calls <= total <= WHOLE + 16
    again = asyncio.run(replay_study(result.run, flow(), journal=place))
    assert again.verdict == result.verdict
    assert again.spend == result.spend


def test_a_test_after_more_is_a_second_look_and_more_of_nothing_changes_nothing(
    place: str,
) -> None:
    model = planted()
    ended = study(model, place, budget=WHOLE)
    assert (ended.improved, ended.verdict.looks) == (True, 1)
    made = len(model.requests)
    again = more(model, place, 500, ended.run)
    assert len(model.requests) == made, "the search had ended by itself"
    assert again.best == ended.best
    assert again.verdict.looks == 2
    assert again.spent == ended.spent
    replayed = asyncio.run(replay_study(ended.run, flow(), journal=place))
    assert replayed.verdict == again.verdict


@pytest.mark.parametrize("first", [60, 420])
def test_the_larger_budget_is_not_overrun(place: str, first: int) -> None:
    model = planted(salt=f"{first}")
    run = study(model, place, budget=first).run
    for _ in range(2):
        result = more(model, place, 90, run)
        first += 90
        assert result.spent.calls <= len(model.requests) <= first


def test_what_cannot_be_given_is_refused(place: str) -> None:
    model = planted()
    run = study(model, place, budget=100).run
    made = len(model.requests)
    for amount, said in (("2usd", "no limit of money"), (0, "nothing"), ("", "is no budget")):
        with pytest.raises(InputError, match=said):
            more(model, place, amount, run)
    with pytest.raises(InputError, match="`more` is for a study that is resumed"):
        study(model, place, more=100)
    assert len(model.requests) == made
