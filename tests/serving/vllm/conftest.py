from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.serving.vllm.supervise import detached
from weft.serving.vllm.supervise.processes import end_leftovers


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder of the test's own, the fake engine behind `demand`; leftovers are ended."""
    from tests.serving.vllm.fake_weft import COMMAND

    folder = tmp_path / "state"
    monkeypatch.setenv("WEFT_STATE_DIR", str(folder))
    monkeypatch.setenv("FAKE_FOLDER", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.fspath(Path(__file__).parents[3]))
    monkeypatch.setattr(detached, "COMMAND", COMMAND)
    yield folder
    end_leftovers()
