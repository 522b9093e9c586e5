"""An evaluation that is killed again and again: no finished case runs twice, and none is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.evaluation.flows import sums_folder
from weft.evaluation.evaluate import read_result

SLOTS = 4
FUNCTIONS = """\
import os, signal
_left = int(os.environ.get("WEFT_TEST_CALLS", "0"))

async def add(a: int, b: int) -> int:
    global _left
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    with open("calls.txt", "a") as file:
        file.write(f"{a}\\n")
    return a + b
"""


def weft(folder: Path, *words: str, calls: int = 0) -> int:
    """The exit status of a command in `folder`, which dies during its call number `calls`."""
    env = {**os.environ, "WEFT_JOURNAL": str(folder / "runs.sqlite"), "WEFT_TEST_CALLS": f"{calls}"}
    command = [sys.executable, "-m", "weft", *words]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True).returncode


def called(folder: Path) -> Counter[str]:
    """How often the function has returned, by case."""
    return Counter((folder / "calls.txt").read_text(encoding="utf-8").split())


def survives(folder: Path, cases: int, replicates: int, kills: int, seed: int = 1) -> None:
    """Evaluate, kill, resume, ...: check after each death, and at the end."""
    draw, total = random.Random(seed), cases * replicates
    sums_folder(folder, cases)
    (folder / "functions.py").write_text(FUNCTIONS, encoding="utf-8")
    (folder / "calls.txt").touch()
    options = ("--replicates", f"{replicates}", "--slots", f"{SLOTS}", "--run-id", "killed")
    words = ("eval", "sums.yaml", "--data", "sums.csv", "--metric", "exact", *options)
    finished: dict[str, int] = {}
    for part in range(kills):
        calls = draw.randint(2, max(3, total // (kills + 1)))
        assert weft(folder, *words, calls=calls) == -signal.SIGKILL, f"part {part}"
        words = ("resume", "killed")
        done = read_result("killed", journal=str(folder / "runs.sqlite"))
        ended = Counter(case.case for case in done.cases if case.status == "scored")
        counts = called(folder)
        assert all(counts[case] == then for case, then in finished.items()), "run once more"
        finished |= {case: counts[case] for case, n in ended.items() if n == replicates}
    assert weft(folder, *words) == 0
    result = read_result("killed", journal=str(folder / "runs.sqlite"))
    assert result.finished
    assert result.counts()["scored"] == total
    assert result.score == 1.0
    counts = called(folder)
    assert all(counts[case] == then for case, then in finished.items())
    assert finished, "some had finished before a death"
    assert min(counts.values()) >= replicates
    assert counts.total() <= total + kills * SLOTS, "only calls under way are made again"


def test_no_finished_case_runs_twice(tmp_path: Path) -> None:
    survives(tmp_path, cases=20, replicates=2, kills=3)


@pytest.mark.slow
def test_a_large_evaluation_survives_twenty_deaths(tmp_path: Path) -> None:
    survives(tmp_path, cases=1_000, replicates=3, kills=20)
