"""Evaluations and studies as `weft ui` reads them, through the page's API."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import weft
from tests.evaluation.flows import QA, answering, rows
from tests.optimisation.studies import flow, named, planted
from tests.optimisation.studies import rows as study_rows
from tests.serving.ui import ui_server
from weft.cli.evaluation.experiments import JournalExperiments
from weft.evaluation.program import item_of
from weft.workflow.apps.ui import READERS
from weft.workflow.runtime.journals import open_journal

HOSTILE = "<img src=x onerror=alert(1)>\u202e"


@pytest.fixture(autouse=True)
def experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    readers = replace(READERS, experiments=JournalExperiments().readers)
    monkeypatch.setattr(ui_server, "READERS", readers)


def test_an_evaluation_is_listed_paged_and_compared(tmp_path: Path) -> None:
    (tmp_path / "qa.yaml").write_text(QA)
    place = str(tmp_path / "runs.sqlite")
    data = [{**row, "id": f"{HOSTILE}{n}"} for n, row in enumerate(rows(12))]
    made = [
        weft.evaluate_sync(
            weft.load(tmp_path / "qa.yaml"), data, "exact",
            models={"small": answering(wrong=wrong)}, journal=place,
        )
        for wrong in ((0,), (3, 4))
    ]  # fmt: skip
    before, after = (one.run for one in made)
    journal = open_journal(place)
    with ui_server.house(journal) as here:
        found = here.get("/api/experiments?limit=1")
        assert found["more"]
        (row,) = found["experiments"]
        assert (row["run"], row["kind"], row["flow"]) == (after, "evaluation", "qa")
        assert (row["mean"], row["cases"]) == (pytest.approx(10 / 12), 12)
        assert row["low"] < row["mean"] < row["high"]
        path = f"/api/evaluation?run={after}&baseline={before}"
        found = here.get(f"{path}&limit=3")
        assert [one["change"] for one in found["cases"]] == [-1.0, -1.0, 1.0]
        assert found["more"]
        assert [one["run"] for one in found["candidates"]] == [before]
        assert found["comparison"]["metrics"]["exact"]["lost"] == 2
        assert found["cases"][0]["id"] == f"{HOSTILE}3"
        assert item_of(found["cases"][0]["node"]) == (3, "run", "")
        left = here.get(f"{path}&after=3")
        assert len(left["cases"]) == 9
        assert not left["more"]
        assert here.http.get("/api/evaluation?run=none").status_code == 404
        assert here.http.get(f"/api/study?run={after}").status_code == 422
        assert here.stranger.get("/api/experiments").status_code == 401
        assert here.http.get("/api/experiments?after=-1").status_code == 400
    journal.close()


def test_a_study_is_listed_and_shown(tmp_path: Path) -> None:
    place = str(tmp_path / "runs.sqlite")
    result = weft.optimise_sync(
        flow(), study_rows(120), "exact", models=named(planted()), budget=3_000, journal=place
    )
    journal = open_journal(place)
    with ui_server.house(journal) as here:
        (row,) = here.get("/api/experiments")["experiments"]
        assert (row["kind"], row["verdict"]) == ("study", result.verdict.kind)
        found = here.get(f"/api/study?run={result.run}")
        assert [one["name"] for one in found["front"]] == [one.name for one in result.front]
        assert found["best"]["diff"] == result.diff
    journal.close()
