"""Damaged journals: a run that is resumed repeats no effect, and every loss is told."""

from __future__ import annotations

import random
import shutil
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.integration.crash.damaged import KINDS, Resumed, damaged, killed_runs

_SEED = 19


def resumed_runs(folder: Path, number: int) -> list[Resumed]:
    """So many damages, of every kind in turn, each of a run that was left at another moment."""
    draw = random.Random(_SEED)
    left = [killed_runs(folder, seed) for seed in range(max(2, number // 80))]
    found = []
    for case in range(number):
        runs = draw.choice(left)
        earlier, killed = sorted(draw.sample(range(len(runs)), 2))
        place = folder / f"case-{case}"
        kind = KINDS[case % len(KINDS)]
        found.append(damaged(place, kind, runs[killed], runs[earlier], draw))
        shutil.rmtree(place)
    return found


def assert_safe(found: list[Resumed]) -> None:
    """No charge was made twice; what is lost is told, and nothing of what is whole."""
    for one in found:
        twice = {key: count for key, count in one.ledger.items() if count > 1}
        assert not twice, (one.kind, one.told)
        assert one.told or not one.lost, one.kind
        if one.kind == "none":
            assert (one.told, one.lost, one.refused) == ((), False, False)


def test_a_damaged_journal_repeats_no_effect_and_tells_of_every_loss(tmp_path: Path) -> None:
    found = resumed_runs(tmp_path, 4 * len(KINDS))
    assert_safe(found)
    assert sum(one.lost for one in found) >= len(found) // 3
    assert any(not one.refused for one in found if one.lost), "not all were refused"


@pytest.mark.slow
def test_a_thousand_damaged_journals(tmp_path: Path) -> None:
    found = resumed_runs(tmp_path, 1000)
    assert_safe(found)
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in found:
        fate = "refused" if one.refused else "resumed"
        loss = "records lost" if one.lost else "records whole"
        counts[one.kind][f"{fate}, {loss}, {'told' if one.told else 'nothing told'}"] += 1
    for kind, count in counts.items():
        print(f"{kind}: {dict(count)}")
