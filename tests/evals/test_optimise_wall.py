"""`python -m evals.optimise_wall` predicts and runs the same edited programs."""

from __future__ import annotations

import pytest

from evals.optimise_wall import SECTIONS, section


@pytest.mark.parametrize("name", SECTIONS)
def test_each_section_predicts_and_measures(name: str) -> None:
    rows = {row.metric: row.value for row in section(name, 1)}
    assert rows["programs"] == 1
    assert rows["median_wall_s"] > 0
    assert rows["median_error"] == rows["p95_error"]
    assert abs(rows["median_bias"]) == pytest.approx(rows["median_error"])
