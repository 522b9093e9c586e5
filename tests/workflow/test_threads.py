"""Functions in threads inside of runs: all kinds share the places, each loop has its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import weft
from weft.testing import FakeClock
from weft.workflow import FlowResult

SLOW_S = 120.0


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    return lambda most: monkeypatch.setenv("WEFT_THREADS", str(most))


class Door:
    """A function that holds up whoever calls it until the door is open, and counts them."""

    def __init__(self) -> None:
        self.at_once = self.inside = self.passed = 0
        self.open = threading.Event()
        self._lock = threading.Lock()

    def pass_through(self) -> None:
        with self._lock:
            self.inside += 1
            self.at_once = max(self.at_once, self.inside)
        self.open.wait(SLOW_S)
        with self._lock:
            self.inside -= 1
            self.passed += 1


@pytest.fixture
def door() -> Iterator[Door]:
    door, others = Door(), set(threading.enumerate())
    yield door
    door.open.set()
    for thread in set(threading.enumerate()) - others:
        if thread.name.startswith("weft-"):
            thread.join(SLOW_S)


async def ended(flow: weft.Flow, then: Callable[[], bool], do: Callable[[], None]) -> FlowResult:
    """The end of a run in which `do` was done as soon as `then` was true."""
    async with asyncio.timeout(SLOW_S):
        running = asyncio.create_task(flow.start({}, durability="none").wait())
        while not then():
            await asyncio.sleep(0.001)
        for _ in range(20):  # whatever may start has started
            await asyncio.sleep(0)
        do()
        return await running


def test_tools_functions_and_reducers_share_the_places(
    places: Callable[[int], None], door: Door
) -> None:
    places(3)

    @weft.tool
    def asks(number: int) -> int:
        door.pass_through()
        return number

    def calls(number: int) -> int:
        door.pass_through()
        return number

    def folds(values: list[int]) -> int:
        door.pass_through()
        return sum(values)

    flow = weft.Flow("doors")
    flow.output(
        asked=flow.map(list(range(5)), lambda n: flow.tool(asks, n)),
        called=flow.map(list(range(5)), lambda n: flow.call(calls, n)),
        folded=flow.reduce(folds, [1, 2, 3]),
    )
    at_the_door: list[int] = []

    def look() -> None:
        at_the_door.append(door.inside)
        door.open.set()

    result = asyncio.run(ended(flow, lambda: door.inside >= 3, look))
    assert result.outputs == {"asked": [0, 1, 2, 3, 4], "called": [0, 1, 2, 3, 4], "folded": 6}
    assert at_the_door == [3]
    assert (door.at_once, door.passed) == (3, 11)


def test_runs_inside_of_functions_do_not_wait_for_their_callers(
    places: Callable[[int], None],
) -> None:
    places(1)

    def inner(number: int) -> int:
        return number + 1

    @weft.tool
    def outer(number: int) -> list[int]:
        flow = weft.Flow("inner")
        flow.output(a=flow.map([number, 10], lambda n: flow.call(inner, n)))
        found: list[int] = flow.run_sync(durability="none").outputs["a"]
        return found

    flow = weft.Flow("outer")
    flow.output(a=flow.map([1, 2, 3], lambda n: flow.tool(outer, n)))
    result = asyncio.run(ended(flow, lambda: True, lambda: None))
    assert result.outputs == {"a": [[2, 11], [3, 11], [4, 11]]}


def test_a_timeout_ends_a_node_that_waits_for_a_thread(
    places: Callable[[int], None], door: Door
) -> None:
    places(1)
    ran: list[str] = []

    def hangs() -> None:
        ran.append("hangs")
        door.pass_through()

    def waits() -> None:
        ran.append("waits")

    flow = weft.Flow("late")
    flow.call(hangs, name="first", timeout=50, on_failure="skip")
    flow.call(waits, name="second", timeout=20, on_failure="skip")
    flow.output(a=flow.value(1))
    clock = FakeClock()
    result = clock.run(flow.run(clock=clock, durability="none"))
    ends: dict[str, Any] = {str(node): end.failure for node, end in result.outcomes.items()}
    assert "20 s" in ends["second"].message
    assert "50 s" in ends["first"].message
    assert clock.now() == pytest.approx(50)
    assert "waits" not in ran


def test_a_wrong_number_of_threads_is_told_by_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_THREADS", "several")
    flow = weft.Flow("wrong")
    flow.output(a=flow.call(three))
    result = asyncio.run(flow.run(durability="none"))
    (failure,) = [end.failure for end in result.outcomes.values() if end.failure is not None]
    assert "WEFT_THREADS is 'several'" in failure.message


def three() -> int:
    return 3
