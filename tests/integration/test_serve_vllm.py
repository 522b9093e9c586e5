"""`weft serve` with a real vLLM: it answers, survives the death of its parts, and leaves nothing.

The short version of `python -m evals.serve_cycles`.
"""

from __future__ import annotations

import random

import pytest

from evals.serve_cycles import cycle


@pytest.mark.vllm
@pytest.mark.model
@pytest.mark.parametrize(
    "victim",
    [
        "weft by SIGKILL",
        pytest.param("chance", marks=pytest.mark.slow),
        # what `weft stop` sends as well, by which the first case ends
        pytest.param("weft by SIGTERM", marks=pytest.mark.slow),
    ],
)
def test_a_life_and_a_sudden_death(victim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_STATE_DIR", "")  # the cycle sets its own, and this puts it back
    if victim == "chance":
        victim = random.choice(["server by SIGKILL", "worker by SIGKILL"])
    done = cycle(victim)
    assert (done.processes, done.ports) == (0, 0), done
    assert done.answers == (1 if victim.startswith("weft") else 2)
