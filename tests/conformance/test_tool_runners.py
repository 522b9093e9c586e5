from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.conformance.tool_runner import ToolRunnerConformance
from weft.agents.reuse import ReusingTools
from weft.agents.tools import Toolbox, tool
from weft.testing import FakeTools, MemoryStore


class TestFakeTools(ToolRunnerConformance):
    def make(self, *functions: Callable[..., Any]) -> FakeTools:
        return FakeTools(**{function.__name__: function for function in functions})


class TestToolbox(ToolRunnerConformance):
    def make(self, *functions: Callable[..., Any]) -> Toolbox:
        return Toolbox(*(tool(function) for function in functions))


class TestReusingTools(ToolRunnerConformance):
    def make(self, *functions: Callable[..., Any]) -> ReusingTools:
        return ReusingTools(Toolbox(*(tool(function) for function in functions)))


class TestReusingPureTools(ToolRunnerConformance):
    def make(self, *functions: Callable[..., Any]) -> ReusingTools:
        pure = (tool(pure=True, version="1")(function) for function in functions)
        return ReusingTools(Toolbox(*pure), store=MemoryStore())
