"""The evaluation of `weft generate-calls`: planted errors, gold of BFCL, its rows."""

from __future__ import annotations

import pytest

from evals.engine.rows import Row
from evals.generate_calls import declared, gold, planted, styles
from evals.planning.effort import Skipped
from weft.agents.calls import check_item

EXPECTED = {
    "unknown_tool": "format",
    "wrong_type": "format",
    "raising_call": "execution",
    "empty_result": "execution",
    "missing_intent": "semantic",
    "extra_call": "semantic",
    "wrong_literal": "semantic",
    "fitting_tool": "semantic",
}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return [Row(**row) for row in planted.rows(quick=True)]


def test_each_kind_is_caught_by_the_gate_that_is_for_it(rows: list[Row]) -> None:
    found = {(row.case, row.system): row.value for row in rows if row.metric == "refused"}
    for kind, gate in EXPECTED.items():
        assert found[kind, gate] == 1.0, kind
        assert found[kind, "any"] == 1.0, kind
    assert found["good_items", "any"] == 0.0


def test_there_are_ten_kinds_and_as_many_items_of_each(rows: list[Row]) -> None:
    counts = {row.case: row.value for row in rows if row.metric == "items"}
    assert set(counts) == {*planted.KINDS, "good_items"}
    assert len(planted.KINDS) == 10
    assert {counts[kind] for kind in planted.KINDS} == {planted.EACH // 4}


def test_what_is_planted_is_the_same_each_time() -> None:
    assert planted.planted(2) == planted.planted(2)


def test_the_table_has_a_line_for_each_kind(rows: list[Row]) -> None:
    lines = planted.table(rows).splitlines()
    assert len(lines) == 1 + len(planted.KINDS) + 1
    assert lines[1].startswith("unknown_tool")


def test_every_style_is_made_from_the_composed_tools() -> None:
    made = {row["case"] for row in styles.rows(quick=True)}
    assert {"style_simple", "style_nested", "style_follow_up"} <= made


def test_accepted_items_pass_again() -> None:
    assert all(check_item(item) is None for item in declared.items(40))


def test_less_than_a_tenth_of_bfcl_is_refused() -> None:
    try:
        rows = gold.rows(quick=True)
    except Skipped as reason:
        pytest.skip(str(reason))
    shares = {row["case"]: row["value"] for row in rows if row["metric"] == "refused"}
    assert set(shares) == {f"gold_{style}" for style in gold.CATEGORIES}
    assert max(shares.values()) < 0.1
