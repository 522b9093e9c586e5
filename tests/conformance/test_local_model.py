from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from tests.conformance.model_client import ModelClientConformance
from weft.core.ports import ModelClient
from weft.serving.local import LocalModel, LocalOptions

pytest.importorskip("torch", reason="weft[local] is not installed")


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.serving.local import tiny

    return tiny.make(tmp_path_factory.mktemp("tiny"))


class TestLocalModel(ModelClientConformance):
    local: LocalModel

    @pytest.fixture(autouse=True)
    def _weights(self, weights: Path) -> None:
        self.weights = weights

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[ModelClient]:
        self.local = LocalModel(self.weights, LocalOptions(dtype="float32", threads=1))
        async with aclosing(self.local):
            yield self.local

    def running(self) -> int:
        return self.local.running
