"""The evaluation of structured output: what its fakes do, and what it counts."""

from __future__ import annotations

import asyncio

import pytest

from evals.structured import measure

CASES = [("fences", 5, 5), ("wrong_field", 0, 10)]


@pytest.mark.parametrize(("system", "first", "requests"), CASES)
def test_counts(system: str, first: int, requests: int) -> None:
    counts = asyncio.run(measure(system, 5))
    assert (counts.first, counts.first + counts.repaired) == (first, 5)
    assert counts.requests == requests
    assert counts.tokens == counts.served > 0
