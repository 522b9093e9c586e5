from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from weft.decoding.network import cores as module
from weft.decoding.network.cores import import_torch, model_threads, usable_cores


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000", 8), ("200000 100000", 2), ("50000 100000", 1), ("9900000 100000", 8), ("", 8)],
)
def test_a_containers_quota_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, cores: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    path = tmp_path / "cpu.max"
    path.write_text(quota + "\n", "ascii")
    assert usable_cores(path) == cores


def test_no_quota_file_is_no_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 5})
    assert usable_cores(tmp_path / "none") == 2


@pytest.mark.parametrize(
    ("usable", "sleeping", "threads"),
    [(8, True, 7), (8, False, 7), (4, True, 4), (2, True, 2), (2, False, 1), (1, False, 1)],
)
def test_a_core_is_left_to_the_program_but_of_few(
    monkeypatch: pytest.MonkeyPatch, usable: int, sleeping: bool, threads: int
) -> None:
    monkeypatch.setattr(module, "usable_cores", lambda: usable)
    monkeypatch.setattr(module, "_sleeping", sleeping)
    assert model_threads() == threads


def test_torch_is_imported_with_threads_that_sleep_and_the_environment_stays() -> None:
    program = (
        "import os; from weft.decoding.network import cores\n"
        "cores.usable_cores = lambda: 2\n"
        "cores.import_torch()\n"
        "print(cores.model_threads(), os.environ.get('GOMP_SPINCOUNT'))"
    )
    command = [sys.executable, "-c", program]
    free = {name: value for name, value in os.environ.items() if name not in module._WAITING}
    for said, expected in (({}, "2 None"), ({"GOMP_SPINCOUNT": "7"}, "1 7")):
        done = subprocess.run(command, env=free | said, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected


def test_torch_that_is_there_already_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_sleeping", False)
    monkeypatch.setitem(sys.modules, "torch", module)
    import_torch()
    assert not module._sleeping
