from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.fake_cluster import FakeCluster
from weft.cluster.tools import RayTools


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Workers in this process unpack code there."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.getbasetemp()))


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCluster]:
    """A cluster for whole runs. Its bridge ends with each of them, in their event loop."""
    made = FakeCluster(tmp_path)
    close = RayTools.aclose

    async def close_all(tools: RayTools) -> None:
        await close(tools)
        await made.bridge.stop()

    monkeypatch.setattr(RayTools, "_open", lambda _, *listeners: made.bridge.connect(*listeners))
    monkeypatch.setattr(RayTools, "aclose", close_all)
    yield made
    made.bridge.clean_up()
