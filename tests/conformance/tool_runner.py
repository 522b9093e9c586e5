"""What every `ToolRunner` must do. Subclass, and say how to make one from plain functions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from weft.core.errors import Cancelled, ToolArgumentError, ToolNotFound, ToolRaised
from weft.core.ports import ToolRunner, bound


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


async def shout(text: str) -> str:
    """Say it louder."""
    await asyncio.sleep(0)
    return text.upper()


def fail(reason: str) -> str:
    """Never works."""
    raise ValueError(reason)


async def fail_later(reason: str) -> str:
    """Never works, but takes its time."""
    await asyncio.sleep(0)
    raise ValueError(reason)


def stop() -> str:
    """Ends with one of weft's own errors."""
    raise Cancelled("stopped on purpose")


class ToolRunnerConformance:
    """The suite."""

    def make(self, *functions: Callable[..., Any]) -> ToolRunner:
        """A runner of these functions, under their own names."""
        raise NotImplementedError

    def call(self, function: Callable[..., Any], **arguments: Any) -> Any:
        return asyncio.run(self.make(function).call(function.__name__, arguments))

    def test_specs_keep_the_order_names_and_descriptions(self) -> None:
        specs = self.make(shout, add).specs()
        assert [spec.name for spec in specs] == ["shout", "add"]
        assert [spec.description for spec in specs] == ["Say it louder.", "Add two numbers."]
        assert all(spec.parameters["type"] == "object" for spec in specs)

    def test_a_plain_function_is_called(self) -> None:
        assert self.call(add, a=2, b=3) == 5

    def test_defaults_hold(self) -> None:
        assert self.call(add, a=2) == 3

    def test_an_async_function_is_awaited(self) -> None:
        assert self.call(shout, text="hi") == "HI"

    def test_a_tool_that_is_looked_up_once_is_called_as_by_its_name(self) -> None:
        async def twice() -> list[Any]:
            call = bound(self.make(add), "add")
            with pytest.raises(ToolArgumentError):
                await call({"c": 2})
            return [await call({"a": 2}), await call({"a": 2, "b": 3})]

        assert asyncio.run(twice()) == [3, 5]

    def test_an_unknown_tool_cannot_be_looked_up_or_called(self) -> None:
        async def call() -> None:
            await bound(self.make(add), "subtract")({})

        with pytest.raises(ToolNotFound, match="subtract"):
            asyncio.run(call())

    def test_an_unknown_tool_is_named_and_the_others_are_offered(self) -> None:
        with pytest.raises(ToolNotFound, match="subtract") as raised:
            asyncio.run(self.make(add).call("subtract", {}))
        assert "add" in str(raised.value)

    @pytest.mark.parametrize("arguments", [{}, {"a": 1, "c": 2}])
    def test_arguments_that_do_not_fit_never_reach_the_tool(
        self, arguments: dict[str, Any]
    ) -> None:
        calls: list[int] = []

        def record(a: int) -> int:
            """Remember."""
            calls.append(a)
            return a

        with pytest.raises(ToolArgumentError, match="record"):
            self.call(record, **arguments)
        assert not calls

    @pytest.mark.parametrize("function", [fail, fail_later])
    def test_what_a_tool_raises_is_told_with_its_cause(self, function: Callable[..., Any]) -> None:
        with pytest.raises(ToolRaised, match="no luck") as raised:
            self.call(function, reason="no luck")
        self.check_cause(raised.value)
        assert not raised.value.retryable

    def check_cause(self, error: ToolRaised) -> None:
        """The `ValueError` of the tool, as an exception; from another process it is data."""
        assert isinstance(error.__cause__, ValueError)

    def test_our_own_errors_pass_unchanged(self) -> None:
        with pytest.raises(Cancelled, match="on purpose"):
            self.call(stop)

    def test_a_failure_leaves_its_siblings_alone(self) -> None:
        async def main() -> list[Any]:
            tools = self.make(add, fail, shout)
            calls: dict[str, dict[str, Any]] = {
                "add": {"a": 1},
                "fail": {"reason": "x"},
                "shout": {"text": "y"},
            }
            tasks = [asyncio.ensure_future(tools.call(*call)) for call in calls.items()]
            await asyncio.wait(tasks)
            return [task.exception() or task.result() for task in tasks]

        first, second, third = asyncio.run(main())
        assert (first, third) == (2, "Y")
        assert isinstance(second, ToolRaised)

    def test_async_tools_run_at_the_same_time(self) -> None:
        started: list[int] = []
        both = asyncio.Event()

        async def meet(number: int) -> int:
            """Wait until the other one is here."""
            started.append(number)
            if len(started) == 2:
                both.set()
            await both.wait()
            return number

        async def main() -> None:
            tools = self.make(meet)
            async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                group.create_task(tools.call("meet", {"number": 1}))
                group.create_task(tools.call("meet", {"number": 2}))

        asyncio.run(main())
        assert sorted(started) == [1, 2]

    def test_cancelling_the_caller_cancels_the_tool(self) -> None:
        seen: list[str] = []

        async def wait() -> None:
            """Wait for ever."""
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

        async def main() -> None:
            task = asyncio.ensure_future(self.make(wait).call("wait", {}))
            for _ in range(20):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert seen == ["cancelled"]
