from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.fake_workers import FakeBridge
from tests.conformance.far_tool_runner import FarToolRunnerConformance
from weft.agents.tools import Toolbox, tool
from weft.cluster.settings import Ray
from weft.cluster.tools import RayTools
from weft.core.ports import ToolRunner


class TestBridgedTools(FarToolRunnerConformance):
    """Through the bridge, to workers in this process."""

    @pytest.fixture(autouse=True)
    def bridge(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path_factory: pytest.TempPathFactory,
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.getbasetemp()))
        self._content = tmp_path
        self._bridge = FakeBridge()

    def make(self, *functions: Callable[..., Any]) -> RayTools:
        box = Toolbox(*(tool(function) for function in functions))
        runner = RayTools(box, Ray(content=self._content), self._bridge.connect)
        assert all(runner.place(box.get(name)) == "default" for name in box.names)
        return runner

    async def aclose(self, runner: ToolRunner) -> None:
        assert isinstance(runner, RayTools)
        await runner.aclose()
        await self._bridge.aclose()
