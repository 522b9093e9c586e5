from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Workers in this process unpack code there."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.getbasetemp()))
