from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from tests.conformance.model_client import ModelClientConformance
from weft.core.ports import ModelClient
from weft.serving.local import LocalModel, LocalOptions

pytest.importorskip("torch", reason="weft[local] is not installed")


@pytest.fixture(scope="module", params=["full", "block_causal"])
def weights(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.serving.local.diffusion import tiny

    return tiny.make(tmp_path_factory.mktemp(request.param), request.param)


class TestLocalDiffusion(ModelClientConformance):
    local: LocalModel

    @pytest.fixture(autouse=True)
    def _weights(self, weights: Path) -> None:
        self.weights = weights

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[ModelClient]:
        options = LocalOptions(dtype="float32", threads=1, canvas_tokens=8)
        self.local = LocalModel(self.weights, options)
        async with aclosing(self.local):
            yield self.local

    def running(self) -> int:
        return self.local.running
