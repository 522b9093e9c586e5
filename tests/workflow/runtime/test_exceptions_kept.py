"""The exception that a node raised is in the result, with its cause and traceback."""

from __future__ import annotations

import asyncio
import threading
import traceback
from typing import Any

import pytest

import weft
from weft.errors import AgentError, NodeFailed, NodeTimeout, ReasoningError, ToolRaised
from weft.testing import FakeClock, FakeModel, MemoryJournal


class MyError(Exception):
    """An exception of a user."""


def broken(x: int) -> int:
    raise MyError(f"no {x}")


async def broken_async(x: int) -> int:
    raise MyError(f"no {x}")


@pytest.mark.parametrize("journal", [None, MemoryJournal()])
@pytest.mark.parametrize("function", [broken, broken_async])
@pytest.mark.parametrize("as_tool", [False, True])
def test_the_cause_is_what_the_code_raised(function: Any, as_tool: bool, journal: Any) -> None:
    flow = weft.Flow("f")
    call = flow.tool(weft.tool(function), 3) if as_tool else flow.call(function, 3)
    flow.output(x=call, y=flow.value(f"{call}"))
    settings = {} if journal is None else {"journal": journal}
    result = flow.run_sync(**settings)
    [(node, error)] = result.errors.items()
    assert isinstance(error, (ToolRaised, NodeFailed))
    assert error.node == node
    assert isinstance(error.__cause__, MyError)
    frames = traceback.extract_tb(error.__cause__.__traceback__)
    assert frames[-1].name == function.__name__


def test_a_replaced_failure_and_a_repaired_one() -> None:
    calls: list[int] = []

    def flaky() -> int:
        calls.append(1)
        if len(calls) < 2:
            raise ToolRaised("again", retryable=True)
        return 1

    flow = weft.Flow("f")
    replaced = flow.call(broken, 3, default=0, name="replaced")
    repaired = flow.call(flaky, retry={"attempts": 2, "delay": 0}, name="repaired")
    flow.output(x=replaced, y=repaired)
    result = flow.run_sync()
    assert result.ok
    assert list(result.errors) == ["replaced"]
    assert isinstance(result.errors[next(iter(result.errors))].__cause__, MyError)


def test_an_error_without_an_exception_is_there_too() -> None:
    async def slow() -> None:
        await asyncio.sleep(100)

    flow = weft.Flow("f")
    flow.output(x=flow.call(slow, timeout=1, name="slow"))
    clock = FakeClock()
    result = clock.run(flow.run(clock=clock))
    assert isinstance(next(iter(result.errors.values())), NodeTimeout)


def test_ask_and_think_raise_from_the_cause() -> None:
    def down(_: object) -> str:
        raise MyError("down")

    with pytest.raises(ReasoningError) as thought:
        weft.think_sync("why?", strategy="direct", model=FakeModel(down))
    with pytest.raises(AgentError) as answer:
        weft.ask_sync("why?", agent="react", model=FakeModel(down))
    for error in (thought.value, answer.value):
        text = "".join(traceback.format_exception(error))
        assert "MyError: down" in text


def test_a_blocking_tool_that_the_run_abandons_is_named() -> None:
    release = threading.Event()

    @weft.tool
    def blocks() -> int:
        release.wait()
        return 1

    flow = weft.Flow("f")
    flow.output(x=flow.tool(blocks, timeout=0.01, name="stuck"))
    try:
        result = flow.run_sync()
    finally:
        release.set()
    assert result.leaked == ("stuck",)
    assert "still running after cancellation: stuck" in result.reasons
