"""How many functions run in threads at once, who waits for them, and who no longer does."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.agents.tools.blocking_functions import SLOW_S, Gate, all_of, awaited, play, turns, until
from weft.agents.tools import Toolbox, tool
from weft.agents.tools.threads import in_thread
from weft.core.errors import BuildError, ToolLimitError, ToolRaised
from weft.testing import FakeClock


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    return lambda most: monkeypatch.setenv("WEFT_THREADS", str(most))


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.let()  # no thread outlives its test
    for thread in gate.threads():
        thread.join(SLOW_S)


def test_so_many_threads_and_no_more(places: Callable[[int], None], gate: Gate) -> None:
    places(3)

    async def main() -> list[int]:
        tasks = [gate.task(number) for number in range(12)]
        await until(lambda: len(gate.began) == 3)
        await turns()
        assert len(gate.threads()) == 3
        assert awaited() == 12  # a clock that jumps waits for those without a thread as well
        gate.let()
        return await all_of(*tasks)

    assert play(main) == list(range(12))
    assert (gate.at_once, len(gate.ended)) == (3, 12)


def test_256_unless_somebody_says_otherwise(monkeypatch: pytest.MonkeyPatch, gate: Gate) -> None:
    monkeypatch.setenv("WEFT_THREADS", "")

    async def main() -> None:
        tasks = [gate.task(number) for number in range(300)]
        await until(lambda: len(gate.began) == 256)
        await turns()
        assert len(gate.threads()) == 256
        gate.let()
        await all_of(*tasks)

    play(main)
    assert (gate.at_once, len(gate.ended)) == (256, 300)


def test_first_come_first_served(places: Callable[[int], None], gate: Gate) -> None:
    places(1)

    async def main() -> None:
        tasks = [gate.task(number) for number in range(6)]
        await turns()
        late = gate.task(6)
        await turns()
        gate.let(5, 3, 6, 1, 0, 4, 2)
        await all_of(*tasks, late)

    play(main)
    assert gate.began == gate.ended == [0, 1, 2, 3, 4, 5, 6]


def test_who_waits_and_is_cancelled_leaves_at_once(
    places: Callable[[int], None], gate: Gate
) -> None:
    places(1)

    async def main() -> None:
        tasks = [gate.task(number) for number in range(4)]
        await until(lambda: gate.began == [0])
        for number in (1, 2):
            tasks[number].cancel()
        await asyncio.wait(tasks[1:3])
        assert (awaited(), gate.ended) == (2, [])
        gate.let()
        assert await all_of(tasks[0], tasks[3]) == [0, 3]
        assert tasks[1].cancelled()
        assert tasks[2].cancelled()

    play(main)
    assert gate.began == [0, 3]


def test_who_is_cancelled_when_the_turn_comes_passes_it_on(
    places: Callable[[int], None], gate: Gate
) -> None:
    places(1)

    async def main() -> None:
        tasks = [gate.task(number) for number in range(3)]
        await until(lambda: gate.began == [0])
        tasks[0].cancel()
        await asyncio.sleep(0)  # 0 leaves, so that 1 may come
        tasks[1].cancel()
        gate.let(2)
        assert await tasks[2] == 2

    play(main)
    assert gate.began == [0, 2]


def test_nobody_waits_for_a_function_that_was_abandoned(
    places: Callable[[int], None], gate: Gate
) -> None:
    places(1)

    async def main() -> None:
        tasks = [gate.task(number) for number in range(3)]
        await until(lambda: gate.began == [0])
        (hanging,) = gate.threads()
        tasks[0].cancel()
        await until(lambda: gate.began == [0, 1])
        assert (awaited(), gate.ended) == (2, [])
        gate.let(0)
        await asyncio.to_thread(hanging.join, SLOW_S)
        await turns()
        assert gate.began == [0, 1]  # its end gives no second place
        assert len(gate.threads()) == 1
        gate.let()
        assert await all_of(*tasks[1:]) == [1, 2]

    play(main)


def test_many_that_hang_starve_nobody(places: Callable[[int], None], gate: Gate) -> None:
    places(2)

    async def main() -> int:
        for number in range(0, 20, 2):
            pair = [gate.task(number), gate.task(number + 1)]
            await until(lambda number=number: len(gate.began) == number + 2)  # type: ignore[misc]
            for task in pair:
                task.cancel()
            await asyncio.wait(pair)
        assert len(gate.threads()) == 20
        assert awaited() == 0
        gate.function(20)
        gate.let(20)
        return await in_thread(lambda: 20, "last")

    assert play(main) == 20


def test_who_raises_gives_the_place_back(places: Callable[[int], None]) -> None:
    places(1)

    @tool
    def trips(number: int) -> int:
        raise ValueError(str(number))

    async def raises(number: int) -> str:
        with pytest.raises(ToolRaised) as caught:
            await Toolbox(trips).call("trips", {"number": number})
        return str(caught.value)

    told = play(lambda: all_of(*(raises(number) for number in range(5))))
    assert [str(number) in text for number, text in enumerate(told)] == [True] * 5


def test_a_thread_that_does_not_start_takes_no_place(
    places: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    places(1)
    start = threading.Thread.start

    def refuses(thread: threading.Thread) -> None:
        if thread.name == "weft-unlucky":
            raise RuntimeError("can't start new thread")
        start(thread)

    async def main() -> int:
        for _ in range(3):
            with pytest.raises(ToolLimitError, match="can't start new thread") as caught:
                await in_thread(lambda: 1, "unlucky")
            assert "WEFT_THREADS" in str(caught.value.hint)
        return await in_thread(lambda: 2, "lucky")

    monkeypatch.setattr(threading.Thread, "start", refuses)
    assert play(main) == 2


def test_a_loop_inside_a_thread_has_places_of_its_own(places: Callable[[int], None]) -> None:
    places(1)

    @tool
    def counts(depth: int) -> int:
        if depth == 0:
            return 1

        async def inside() -> int:
            calls = [Toolbox(counts).call("counts", {"depth": depth - 1}) for _ in range(2)]
            return sum(await all_of(*calls))

        return asyncio.run(inside())

    assert play(lambda: Toolbox(counts).call("counts", {"depth": 3})) == 8


def test_a_loop_inside_a_thread_is_bounded_as_well(
    places: Callable[[int], None], gate: Gate
) -> None:
    places(2)

    async def inside() -> tuple[int, int]:
        tasks = [gate.task(number) for number in range(6)]
        await until(lambda: len(gate.began) == 2)
        await turns()
        found = len(gate.threads()), awaited()
        gate.let()
        await all_of(*tasks)
        return found

    assert play(lambda: in_thread(lambda: asyncio.run(inside()), "outer")) == (2, 6)
    assert gate.at_once == 2


def test_a_function_that_asks_its_own_loop_needs_no_second_place(
    places: Callable[[int], None],
) -> None:
    """A thread of the loop, and one of a loop inside a thread of it."""
    places(1)

    async def main() -> list[int]:
        loop = asyncio.get_running_loop()

        def asks(number: int) -> int:
            call = in_thread(lambda: number, "asked")
            return asyncio.run_coroutine_threadsafe(call, loop).result(SLOW_S)

        def asks_deeper(number: int) -> int:
            return asyncio.run(in_thread(lambda: asks(number), "deeper"))

        return await all_of(
            in_thread(lambda: asks(1), "asking"), in_thread(lambda: asks_deeper(2), "asking")
        )

    assert play(main) == [1, 2]


def test_the_time_of_a_tool_begins_when_it_has_a_thread(
    places: Callable[[int], None], gate: Gate
) -> None:
    places(1)
    clock = FakeClock()

    @tool(timeout_s=60)
    def quick() -> str:
        return "done"

    async def main() -> Any:
        first = gate.task(0)
        second = asyncio.create_task(Toolbox(quick).call("quick", {}))
        await asyncio.sleep(1000)
        clock.busy = lambda: awaited() > 0
        assert not second.done()
        gate.let()
        assert await first == 0
        return await second

    assert clock.run(main()) == "done"
    assert clock.now() >= 1000


def test_a_batch_waits_for_a_place_before_its_time_begins(
    places: Callable[[int], None], gate: Gate
) -> None:
    places(1)
    clock = FakeClock()

    def all_added(calls: list[Mapping[str, Any]]) -> list[int]:
        return [call["number"] + 1 for call in calls]

    @tool(timeout_s=60, batch=all_added, effect="pure")
    def one(number: int) -> int:
        return number + 1

    async def main() -> Any:
        first = gate.task(0)
        second = asyncio.create_task(Toolbox(one).call_batch("one", [{"number": 1}]))
        await asyncio.sleep(1000)
        clock.busy = lambda: awaited() > 0
        assert not second.done()
        gate.let()
        assert await first == 0
        return await second

    assert clock.run(main()) == [2]


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", "1e3", "9" * 5000])
def test_what_is_no_number_of_threads_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_THREADS", text)
    with pytest.raises(BuildError, match="WEFT_THREADS is '") as caught:
        play(lambda: in_thread(lambda: 1, "one"))
    assert "whole number above 0" in str(caught.value.hint)
    assert len(str(caught.value)) < 400


def test_a_loop_that_was_waited_in_is_forgotten(places: Callable[[int], None]) -> None:
    places(1)
    threads: list[threading.Thread] = []

    async def main() -> weakref.ref[Any]:
        calls = [in_thread(lambda: threads.append(threading.current_thread()), "n") for _ in "abc"]
        await all_of(*calls)
        assert awaited() == 0
        return weakref.ref(asyncio.get_running_loop())

    loop = play(main)
    for thread in threads:
        thread.join(SLOW_S)
    gc.collect()
    assert loop() is None
