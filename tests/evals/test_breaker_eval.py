from __future__ import annotations

from evals.breaker import rows_of


def test_a_breaker_spares_the_server_and_loses_no_more() -> None:
    rows = {(row.system, row.metric): row.value or 0.0 for row in rows_of(quick=True)}
    alone, guarded = "retry alone", "breaker, 5 s"
    assert rows[alone, "arrived"] == rows[guarded, "arrived"] == 1_800
    assert rows[alone, "calls_in_outage"] > 1_000
    assert rows[guarded, "calls_in_outage"] < 40
    assert rows[guarded, "lost"] <= rows[alone, "lost"]
    assert rows[guarded, "recovery_s"] <= 6.5
