"""Moments in which two things happen at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.serving.fleet.server import Server
from weft.core.errors import ModelUnavailable
from weft.serving.fleet import FleetOptions, FleetStats
from weft.serving.fleet.admission import FleetAdmission
from weft.serving.fleet.order import QueuedCall, Rank
from weft.serving.fleet.replica import FleetReplica
from weft.testing import FakeClock

CHAIN = tuple(range(10))


def ticket(number: int, chain: tuple[int, ...] = ()) -> QueuedCall:
    return QueuedCall(Rank(0.0, 0.0, number), chain, None)


def with_one_place(body: Callable[[FleetAdmission, FleetReplica], Awaitable[None]]) -> None:
    clock = FakeClock()

    async def main() -> None:
        replica = FleetReplica(Server(), 1, "r")
        admission = FleetAdmission([replica], FleetOptions(in_flight=1), clock, FleetStats())
        await body(admission, replica)
        assert replica.running == 0
        assert len(asyncio.all_tasks()) == 1

    clock.run(main())


@pytest.mark.parametrize("leavers", [1, 2])
def test_a_place_becomes_free_as_the_first_in_line_leaves(leavers: int) -> None:
    async def body(admission: FleetAdmission, replica: FleetReplica) -> None:
        running = ticket(0)
        await admission.enter(running)
        tickets = [ticket(number) for number in (1, 2)]
        tasks = [asyncio.create_task(admission.enter(each)) for each in tickets]
        await asyncio.sleep(0)
        for task in tasks[:leavers]:
            task.cancel()
        admission.leave(running, replica)
        await asyncio.wait(tasks)
        assert [task.cancelled() for task in tasks] == [True, leavers == 2]
        if leavers == 1:
            admission.leave(tickets[1], replica)

    with_one_place(body)


@pytest.mark.parametrize("first", ["grant", "cancel"])
def test_a_call_is_cancelled_as_its_turn_comes(first: str) -> None:
    async def body(admission: FleetAdmission, replica: FleetReplica) -> None:
        running, other = ticket(0), ticket(1)
        await admission.enter(running)
        task = asyncio.create_task(admission.enter(other))
        await asyncio.sleep(0)
        steps = [lambda: admission.leave(running, replica), task.cancel]
        for step in steps if first == "grant" else reversed(steps):
            step()
        await asyncio.wait([task])
        assert task.cancelled()

    with_one_place(body)


@pytest.mark.parametrize("first", ["refuse", "cancel"])
def test_a_call_is_cancelled_as_it_is_refused(first: str) -> None:
    async def body(admission: FleetAdmission, replica: FleetReplica) -> None:
        running = ticket(0)
        await admission.enter(running)
        task = asyncio.create_task(admission.enter(ticket(1)))
        await asyncio.sleep(0)
        steps = [lambda: admission.close(lambda: ModelUnavailable("closed")), task.cancel]
        for step in steps if first == "refuse" else reversed(steps):
            step()
        await asyncio.wait([task])
        assert task.cancelled()
        admission.leave(running, replica)
        with pytest.raises(ModelUnavailable, match="closed"):
            await admission.enter(ticket(2))

    with_one_place(body)


def test_calls_that_are_held_are_cancelled_and_refused_like_others() -> None:
    clock = FakeClock()

    async def main() -> None:
        replica, stats = FleetReplica(Server(), None, "r"), FleetStats()
        admission = FleetAdmission([replica], FleetOptions(hold_s=1.0), clock, stats)
        leader = ticket(0, CHAIN)
        await admission.enter(leader)
        tasks = [asyncio.create_task(admission.enter(ticket(n, CHAIN))) for n in range(1, 4)]
        await asyncio.sleep(0)
        assert (replica.running, stats.held_for_prefix, stats.most_waiting) == (1, 3, 3)
        tasks[0].cancel()
        await asyncio.sleep(0)
        admission.refuse_all(lambda: ModelUnavailable("all are down"))
        await asyncio.wait(tasks)
        assert tasks[0].cancelled()
        for task in tasks[1:]:
            with pytest.raises(ModelUnavailable, match="all are down"):
                task.result()
        admission.prefilled(leader, replica)
        admission.leave(leader, replica)
        await clock.sleep(5.0)  # No timer is left to wake anybody.
        assert replica.running == 0
        assert replica.prefixes.computed(CHAIN) == len(CHAIN)

    clock.run(main())


def test_whoever_has_waited_for_one_prefill_does_not_wait_for_another() -> None:
    clock = FakeClock()

    async def main() -> None:
        replica, stats = FleetReplica(Server(), None, "r"), FleetStats()
        admission = FleetAdmission([replica], FleetOptions(hold_s=1.0), clock, stats)
        leader, patient = ticket(0, CHAIN), ticket(1, CHAIN)
        await admission.enter(leader)
        await admission.enter(patient)
        assert clock.now() == pytest.approx(1.0)
        assert stats.held_for_prefix == 1
        admission.leave(patient, replica)
        await admission.enter(patient, bounded=False)
        assert clock.now() == pytest.approx(1.0)

    clock.run(main())
