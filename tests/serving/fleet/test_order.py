from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving.fleet.fleet_calls import answer, asking, play, settle
from tests.serving.fleet.server import ABLE, Server
from weft.core.errors import ModelOverloaded
from weft.core.ports import Capabilities, ModelRequest, Program
from weft.serving.fleet import Fleet, FleetOptions
from weft.serving.fleet.order import ProgramOrder
from weft.testing import FakeClock


def started(arrivals: list[tuple[float, ModelRequest]], **options: Any) -> list[str]:
    """In which order requests reach one replica that runs one at a time; it is busy at first."""
    server = Server(prefill_s=20)

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        async def come(at_s: float, request: ModelRequest) -> None:
            await clock.sleep(at_s)
            await answer(fleet, request)

        async with asyncio.TaskGroup() as group:
            group.create_task(answer(fleet, asking("busy")))
            await settle()
            server.prefill_s = 0.1
            for at_s, request in arrivals:
                group.create_task(come(at_s, request))

    play(body, [server], in_flight=1, **options)
    return [request.messages[0].content for request in server.requests[1:]]


def of(name: str, program: str, remaining: float, path: float | None = None) -> ModelRequest:
    return asking(name, program=Program(program, remaining if path is None else path, remaining))


def test_the_program_nearest_to_its_end_goes_first() -> None:
    arrivals = [(0, of("long", "a", 9)), (0, of("short", "b", 1)), (0, of("middle", "c", 4))]
    assert started(arrivals) == ["short", "middle", "long"]


def test_within_a_program_the_call_with_the_longest_way_goes_first() -> None:
    arrivals = [(0, of("leaf", "a", 5, 1)), (0, of("spine", "a", 5, 5)), (0, of("side", "a", 5, 3))]
    assert started(arrivals) == ["spine", "side", "leaf"]


def test_waiting_outweighs_remaining_work_at_the_rate_of_patience() -> None:
    """With a patience of 2, five weights more are overtaken for ten seconds and no longer."""
    early, late = of("long", "a", 6), of("short", "b", 1)
    assert started([(0, early), (9.9, late)], patience=2) == ["short", "long"]
    assert started([(0, early), (10.1, late)], patience=2) == ["long", "short"]
    slow = {"patience": 2, "seconds_per_weight": 1.2}
    assert started([(0, early), (10.1, late)], **slow) == ["short", "long"]


def test_a_program_keeps_its_arrival_for_later_calls() -> None:
    arrivals = [(0, of("a1", "a", 6)), (11, of("b1", "b", 5)), (12, of("a2", "a", 5))]
    assert started(arrivals, patience=2) == ["a2", "a1", "b1"]


def test_arrival_order_knows_no_programs() -> None:
    arrivals = [(0, of("long", "a", 9)), (0.1, of("short", "b", 1)), (0.2, asking("x", priority=9))]
    assert started(arrivals, order="arrival") == ["long", "short", "x"]


def test_priority_orders_calls_without_a_program() -> None:
    arrivals = [
        (0, asking("low", priority=-1)),
        (0, asking("none")),
        (0, asking("high", priority=2)),
    ]
    assert started(arrivals) == ["high", "none", "low"]


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(1, 9), st.integers(0, 9)), min_size=2))
def test_the_order_among_waiting_calls_never_depends_on_when_it_is_looked_at(
    calls: list[tuple[float, int, int]],
) -> None:
    """What is ranked is `waited - patience * remaining`, at any moment after all have come."""
    order = ProgramOrder(FleetOptions(patience=3.0), epoch_s=0.0)
    ranks = []
    for number, (at_s, path, more) in enumerate(sorted(calls)):
        program = Program(str(number), path, path + more)
        ranks.append((order.rank(asking(program=program), at_s), at_s, path + more))
    for moment_s in (100.0, 1000.0):
        merit = [(moment_s - at_s) - 3.0 * remaining for _, at_s, remaining in ranks]
        for (rank, *_), mine in zip(ranks, merit, strict=True):
            for (other, *_), its in zip(ranks, merit, strict=True):
                assert rank > other or mine >= its - 1e-6 or rank.moment_s == other.moment_s


def test_programs_seen_long_ago_are_forgotten() -> None:
    order = ProgramOrder(FleetOptions(), epoch_s=0.0)
    first = order.rank(of("", "kept", 1), 0.0).moment_s
    order.rank(of("", "lost", 1), 0.0)
    for number in range(9_999):
        order.rank(of("", str(number), 1), 1.0)
        if number == 5_000:
            assert order.rank(of("", "kept", 1), 2.0).moment_s == first
    assert order.rank(of("", "kept", 1), 3.0).moment_s == first
    assert order.rank(of("", "lost", 1), 3.0).moment_s == first + 3


def test_the_server_is_told_the_same_order_in_milliseconds() -> None:
    server = Server()

    since: list[float] = []

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        await clock.sleep(2.0)
        since.append(clock.wall().timestamp() * 1000)
        await answer(fleet, of("x", "p", 3, 1))
        await answer(fleet, of("y", "p", 3, 3))

    play(body, [server], patience=4)
    # On arrival, and 3 weights of patience 4 later: 12 s; and 2 weights beside the path.
    assert [-request.priority - since[0] for request in server.requests] == [12002, 12000]


@pytest.mark.parametrize(
    ("able", "order"), [(ABLE, "arrival"), (Capabilities(token_ids=True), "program")]
)
def test_priorities_stay_as_they_are_otherwise(able: Capabilities, order: str) -> None:
    server = Server(able=able)

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        await answer(fleet, asking(priority=5))

    play(body, [server], order=order)
    assert [request.priority for request in server.requests] == [5]


def test_a_cancelled_waiter_leaves_the_queue_at_once() -> None:
    server = Server()

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        first = asyncio.create_task(answer(fleet, asking("busy", 50)))
        waiting = [asyncio.create_task(answer(fleet, asking(str(n)))) for n in range(3)]
        await settle()
        waiting[1].cancel()
        await asyncio.wait([first, *waiting])

    play(body, [server], in_flight=1)
    assert [request.messages[0].content for request in server.requests] == ["busy", "0", "2"]


def test_a_full_queue_refuses() -> None:
    async def body(fleet: Fleet, clock: FakeClock) -> int:
        tasks = [asyncio.create_task(answer(fleet, asking(str(n)))) for n in range(4)]
        await settle()
        with pytest.raises(ModelOverloaded, match="2 calls wait already"):
            await answer(fleet, asking("one too many"))
        await asyncio.wait(tasks)
        assert all(task.result().text for task in tasks)
        return fleet.stats().most_waiting

    assert play(body, [Server()], in_flight=2, max_waiting=2) == 2


def test_between_programs_the_work_left_counts_where_it_is_known() -> None:
    order = ProgramOrder(FleetOptions(patience=2.0), epoch_s=0.0)
    wide = asking("x", program=Program("wide", 1, 1, work=8))
    deep = asking("y", program=Program("deep", 5, 5, work=5))
    assert order.rank(wide, 0.0).moment_s == 16
    assert order.rank(deep, 0.0).moment_s == 10
