"""Runs survive the death of their process: nothing is lost, and no effect happens twice."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.durability.journal.lock_timeouts import PATIENCE_S
from tests.integration.crash.killed import Survived, survived, undisturbed
from weft.engine.runner.recorder import Durability

_KINDS: tuple[Durability, ...] = ("sync", "sync", "sync", "async", "exit")
_SEEDS_OF_A_LONG_TEST = 260


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.durability.journal.sqlite.tables.BUSY_S", PATIENCE_S)


def killed_runs(folder: Path, seeds: range, ways: int) -> tuple[int, int]:
    """Kill `ways` runs of each seed until they are done; how many runs, and how many kills."""
    kills = runs = 0
    for seed in seeds:
        expected = undisturbed(folder / f"{seed}", seed)
        for way in range(ways):
            draw = random.Random(1000 * seed + way)
            durability = draw.choice(_KINDS)
            found = survived(
                folder / f"{seed}_{way}", seed, durability, draw, kills=draw.randint(1, 5)
            )
            told = f"seed {seed}, way {way}, {durability}, {found.kills} kills"
            assert found.result == expected.result, told
            assert_effects(found, expected, told)
            kills += found.kills
            runs += 1
    return runs, kills


def assert_effects(found: Survived, expected: Survived, told: str) -> None:
    """Every effect that must happen happened once; those of losers at most once."""
    assert all(count == 1 for count in found.ledger.values()), f"doubled: {told}"
    assert _sure(found) == _sure(expected), f"lost or made up: {told}"


def _sure(run: Survived) -> set[str]:
    return {key for key in run.ledger if not key.startswith("maybe/")}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_runs_that_are_killed_come_to_what_they_come_to_undisturbed(tmp_path: Path) -> None:
    runs, kills = killed_runs(tmp_path, range(15), 2)
    assert runs == 30
    assert kills >= 15, "so many die at moments of their own; others may end before they are killed"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_a_thousand_runs_that_are_killed(tmp_path: Path) -> None:
    runs, kills = killed_runs(tmp_path, range(100, 100 + _SEEDS_OF_A_LONG_TEST), 4)
    print(f"{runs} runs, {kills} kills")
    assert runs >= 1000
    assert kills >= 1000
