from __future__ import annotations

import os
from pathlib import Path

import pytest

from weft.decoding.network.options import model_threads, usable_cores


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


def test_a_core_is_left_to_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.decoding.network.options.usable_cores", lambda: 8)
    assert model_threads() == 7
    monkeypatch.setattr("weft.decoding.network.options.usable_cores", lambda: 1)
    assert model_threads() == 1
