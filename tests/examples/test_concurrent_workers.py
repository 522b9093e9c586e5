"""The example of workers that see one another, on a random model."""

from __future__ import annotations

import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("torch") is None:
    pytest.skip("needs the `local` extra", allow_module_level=True)

from tests.serving.local import tiny
from tests.serving.local.playback import EXACT
from weft.serving.local import LocalModel

EXAMPLE = Path(__file__).parents[2] / "examples" / "think" / "together.py"


@pytest.mark.parametrize("layout", ["contiguous", "interleaved", "combined", "slots"])
def test_workers_write_side_by_side(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tiny.make(tmp_path)
    monkeypatch.setattr("weft.serving.local.LocalModel", lambda _: LocalModel(folder, EXACT))
    asked = ["together.py", "--layout", layout, "--workers", "3", "--tokens", "30"]
    monkeypatch.setattr(sys, "argv", asked)
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    shown = capsys.readouterr().out
    for name in ("Alice", "Bob", "Carol"):
        assert f"{name:>6} | " in shown
        assert f"--- {name}, " in shown
    assert "forward passes in all" in shown
