"""The evaluation of maps that grow: faults are found, clean data raises no alarm."""

from __future__ import annotations

import pytest

from evals import growing_maps
from evals.planning.effort import Skipped


def _measure(fault: str, seed: int | None) -> tuple[int, bool]:
    try:
        return growing_maps.measure(fault, seed)
    except Skipped as reason:
        pytest.skip(str(reason))


def test_a_late_fault_is_found_before_all_rows_are_done() -> None:
    done, failed = _measure("cents from row 900 on", 0)
    assert failed
    assert done <= 20
    assert _measure("cents from row 900 on", None) == (2240, True)


def test_clean_data_raises_no_alarm() -> None:
    assert _measure("clean", 0) == (2240, False)
