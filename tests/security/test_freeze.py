"""A server answers others while one request attacks it, and SIGTERM ends it all the same.

What is asserted is behaviour; how quickly it answers is a benchmark: `python -m evals.security`.
"""

from __future__ import annotations

import math

import pytest

from evals.security.attacked import attacked
from evals.security.attacks import ATTACKS, Attack

_OFTEN = ("pattern of an input", "pattern of a question (UI)")


def _cases() -> list[object]:
    slow = pytest.mark.slow
    return [
        pytest.param(attack, id=attack.name, marks=() if attack.name in _OFTEN else (slow,))
        for attack in ATTACKS
    ]


@pytest.mark.parametrize("attack", _cases())
def test_others_are_answered_and_sigterm_ends_it(attack: Attack) -> None:
    found = attacked(attack)
    assert found.status in attack.statuses
    assert found.latencies_ms
    assert all(math.isfinite(latency) for latency in found.latencies_ms)
    assert math.isfinite(found.ended_s), "it had to be killed"
    assert found.exit_status in (0, 130)
