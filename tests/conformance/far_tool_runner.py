"""The suite for runners whose tools are in other processes: those import them, and see files."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.tool_runner import ToolRunnerConformance
from weft.core.errors import ToolArgumentError, ToolRaised
from weft.core.ports import ToolRunner


def record(file: str, a: int) -> int:
    """Remember."""
    Path(file).write_text(str(a), "utf-8")
    return a


async def meet(folder: str, number: int) -> int:
    """Wait until the other one is here."""
    Path(folder, str(number)).touch()
    while len(list(Path(folder).iterdir())) < 2:
        await asyncio.sleep(0.01)
    return number


async def wait(folder: str) -> None:
    """Wait for ever."""
    Path(folder, "begun").touch()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        Path(folder, "cancelled").touch()
        raise


class FarToolRunnerConformance(ToolRunnerConformance):
    """The suite, with tools that can be imported."""

    async def aclose(self, runner: ToolRunner) -> None:
        """Close what `make` made."""
        raise NotImplementedError

    def call(self, function: Callable[..., Any], **arguments: Any) -> Any:
        async def main() -> Any:
            runner = self.make(function)
            try:
                return await runner.call(function.__name__, arguments)
            finally:
                await self.aclose(runner)

        return asyncio.run(main())

    def check_cause(self, error: ToolRaised) -> None:
        assert error.cause is not None
        assert error.cause.classes[0] == "ValueError"

    @pytest.mark.parametrize("arguments", [{}, {"a": 1, "c": 2}])
    def test_arguments_that_do_not_fit_never_reach_the_tool(
        self, arguments: dict[str, Any]
    ) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "a")
            with pytest.raises(ToolArgumentError, match="record"):
                self.call(record, file=str(file), **arguments)
            assert not file.exists()

    def test_async_tools_run_at_the_same_time(self) -> None:
        async def main(folder: str) -> list[int]:
            tools = self.make(meet)
            async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                calls = [
                    group.create_task(tools.call("meet", {"folder": folder, "number": number}))
                    for number in (1, 2)
                ]
            await self.aclose(tools)
            return [call.result() for call in calls]

        with tempfile.TemporaryDirectory() as folder:
            assert asyncio.run(main(folder)) == [1, 2]

    def test_cancelling_the_caller_cancels_the_tool(self) -> None:
        async def main(folder: str) -> None:
            tools = self.make(wait)
            task = asyncio.ensure_future(tools.call("wait", {"folder": folder}))
            async with asyncio.timeout(60):
                while not Path(folder, "begun").exists():
                    await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert Path(folder, "cancelled").exists()
            await self.aclose(tools)

        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(main(folder))
