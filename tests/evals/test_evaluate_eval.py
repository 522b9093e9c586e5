"""`python -m evals.evaluate` measures every system on the same cases."""

from __future__ import annotations

from evals.evaluate import measured


def test_each_system_evaluates_all_cases() -> None:
    rows = list(measured(2))
    assert {row.case for row in rows} == {"cases_2x3", "cases_2x3_100ms"}
    systems = {row.system for row in rows}
    assert systems == {"asyncio", "asyncio_recorded", "weft_unrecorded", "weft"}
    assert all(row.value > 0 for row in rows)
