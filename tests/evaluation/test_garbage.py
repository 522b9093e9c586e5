"""While an evaluation runs, Python collects garbage rarely; afterwards as before."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import weft

_FLOW = """
name: twice
inputs: {a: integer}
nodes: {total: {value: "{{ 2 * a }}"}}
outputs: {total: "{{ total }}"}
"""


@pytest.mark.parametrize("young", [700, 0, 100_000])
def test_collections_are_rare_until_the_evaluation_ends(young: int) -> None:
    before, seen = gc.get_threshold(), []

    def metric(case: Any, outputs: Any) -> bool:
        seen.append(gc.get_threshold()[0])
        return bool(outputs["total"] == case["expected"])

    try:
        gc.set_threshold(young, 10, 10)
        found = weft.evaluate_sync(
            weft.loads(_FLOW), [{"a": 1, "expected": 2}, {"a": 2, "expected": 4}], metric
        )
        assert found.score == 1.0
        assert seen == [max(young, 50_000) if young else 0] * 2
        assert gc.get_threshold() == (young, 10, 10)
    finally:
        gc.set_threshold(*before)
