"""Several runners as one: the port's suite, names that clash, and batches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.conformance.tool_runner import ToolRunnerConformance
from weft.agents.tools import Toolbox, tool
from weft.agents.tools.toolbox import JoinedTools
from weft.core.errors import DuplicateName, ToolNotFound
from weft.core.ports import BatchRunner
from weft.testing import FakeTools


class TestJoinedTools(ToolRunnerConformance):
    def make(self, *functions: Callable[..., Any]) -> JoinedTools:
        return JoinedTools(*(Toolbox(tool(function)) for function in functions))


def test_calls_go_to_the_runner_that_has_the_tool() -> None:
    first, second = FakeTools(a=lambda: 1), FakeTools(b=lambda: 2)
    tools = JoinedTools(first, second)
    assert [spec.name for spec in tools.specs()] == ["a", "b"]
    assert asyncio.run(tools.call("b", {})) == 2
    assert not first.calls


def test_one_name_has_one_owner() -> None:
    with pytest.raises(DuplicateName, match="two tools 'a'"):
        JoinedTools(FakeTools(a=lambda: 1), FakeTools(a=lambda: 2))


def test_a_tool_that_came_later_is_found() -> None:
    box = Toolbox()
    tools = JoinedTools(box)

    @tool
    def late() -> int:
        """Come later."""
        return 3

    with pytest.raises(ToolNotFound):
        asyncio.run(tools.call("late", {}))
    box.add(late)
    assert asyncio.run(tools.call("late", {})) == 3


def test_batches_go_to_runners_that_take_them() -> None:
    def doubles(calls: list[Mapping[str, Any]]) -> list[int]:
        return [2 * call["n"] for call in calls]

    @tool(batch=doubles)
    def double(n: int) -> int:
        """Double."""
        return 2 * n

    tools = JoinedTools(Toolbox(double), FakeTools(single=lambda: 1))
    assert isinstance(tools, BatchRunner)
    assert asyncio.run(tools.call_batch("double", [{"n": 1}, {"n": 2}])) == [2, 4]
    with pytest.raises(ToolNotFound, match="one call at a time"):
        asyncio.run(tools.call_batch("single", [{}]))


def test_the_owner_of_a_tool_says_what_slots_it_takes() -> None:
    @tool(resource="gpu")
    def heavy() -> str:
        """Takes a slot."""
        return ""

    joined = JoinedTools(Toolbox(heavy), FakeTools(light=str))
    assert [joined.resource(name) for name in ("heavy", "light", "none")] == ["gpu", None, None]
