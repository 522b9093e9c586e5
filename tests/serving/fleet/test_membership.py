"""Fleets that grow and shrink while calls run."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serving.fleet.fleet_calls import answer, asking, play, settle
from tests.serving.fleet.server import Server
from weft.core.values import Completion
from weft.errors import ModelUnavailable
from weft.serve import Fleet, FleetOptions
from weft.testing import FakeClock


def test_an_added_replica_takes_calls_that_wait() -> None:
    first, second = Server(), Server()

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        calls = [asyncio.create_task(answer(fleet, asking(f"call {n}"))) for n in range(4)]
        await settle()
        assert (fleet.load().running, fleet.load().waiting) == (1, 3)
        fleet.add(second)
        await settle()
        assert (fleet.load().running, fleet.load().waiting) == (2, 2)
        for call in calls:
            await call
        assert len(second.requests) == 2

    play(body, [first], in_flight=1)


def test_a_removed_replica_ends_its_calls_and_gets_no_more() -> None:
    first, second = Server(), Server()

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        running = asyncio.create_task(answer(fleet, asking("before", 30)))
        await settle()
        assert first.running == 1
        removal = asyncio.create_task(fleet.remove(first))
        await settle()
        assert not removal.done()
        assert fleet.load().usable == 1
        for n in range(5):
            await answer(fleet, asking(f"after {n}", 2))
        assert len(first.requests) == 1
        assert (await running).text == (await answer(Server(), asking("before", 30))).text
        await removal
        assert first.closed
        assert fleet.stats().resumed == 0

    play(body, [first, second])


def test_calls_of_a_removed_replica_that_dies_go_on_elsewhere() -> None:
    first, second = Server(), Server()

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        running = asyncio.create_task(answer(fleet, asking("river", 30)))
        clock.call_later(first.prefill_s + 5.5 * first.token_s, first.kill)
        await settle()
        removal = asyncio.create_task(fleet.remove(first))
        assert (await running).text == (await answer(Server(), asking("river", 30))).text
        await removal
        assert fleet.stats().resumed == 1
        assert first.probes == 0  # it is not waited for

    play(body, [first, second])


def test_a_broken_replica_leaves_at_once_and_is_not_probed_again() -> None:
    first, second = Server(down=True), Server()

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        await answer(fleet, asking())
        await clock.sleep(10)
        assert fleet.load().broken == 1
        await fleet.remove(first)
        probes = first.probes
        await clock.sleep(100)
        assert first.probes == probes
        load = fleet.load()
        assert (load.usable, load.resting, load.broken) == (1, 0, 0)

    play(body, [first, second])


def test_without_a_replica_calls_wait_for_one() -> None:
    clock = FakeClock()

    async def main() -> None:
        fleet = Fleet((), FleetOptions(outage_s=60), clock=clock, model="m")
        call = asyncio.create_task(answer(fleet, asking()))
        await clock.sleep(59)
        assert not call.done()
        fleet.add(Server())
        assert (await call).text
        await clock.sleep(1_000)
        assert (await answer(fleet, asking())).text
        await fleet.aclose()

    clock.run(main())


def test_the_wait_for_a_first_replica_has_an_end_and_the_next_one_helps() -> None:
    clock = FakeClock()

    async def main() -> None:
        fleet = Fleet((), FleetOptions(outage_s=60), clock=clock, model="m")
        with pytest.raises(ModelUnavailable, match="no replica answered for 60 s: there is none"):
            await answer(fleet, asking())
        assert clock.now() == 60
        with pytest.raises(ModelUnavailable, match="there is no replica at present"):
            await fleet.capabilities()
        with pytest.raises(ModelUnavailable, match="there is no replica at present"):
            await fleet.encode("text")
        fleet.add(Server())
        assert (await answer(fleet, asking())).text
        await fleet.aclose()

    clock.run(main())


def test_the_last_replica_may_leave() -> None:
    server = Server()

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        await answer(fleet, asking())
        await fleet.remove(server)
        call = asyncio.create_task(answer(fleet, asking()))
        await clock.sleep(5)
        fleet.add(Server())
        assert (await call).text

    play(body, [server])


def test_what_does_not_belong_is_refused() -> None:
    async def body(fleet: Fleet, clock: FakeClock) -> None:
        other = Server()
        other.model = "another"
        with pytest.raises(ValueError, match="has no replica of another"):
            fleet.add(other)
        with pytest.raises(ValueError, match="has no replica"):
            await fleet.remove(Server())
        await fleet.aclose()
        with pytest.raises(ModelUnavailable, match="is closed"):
            fleet.add(Server())

    play(body, [Server()])


def test_closing_ends_a_removal_that_waits() -> None:
    server = Server()

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        call = asyncio.create_task(answer(fleet, asking("long", 500)))
        await settle()
        removal = asyncio.create_task(fleet.remove(server))
        await settle()
        await fleet.aclose()
        await removal
        assert server.closed
        with pytest.raises(ModelUnavailable):
            await call

    play(body, [server])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("addremovekill"), st.floats(0, 3)), max_size=14),
    st.integers(1, 12),
)
def test_any_coming_and_going_changes_no_answer(moves: list[tuple[str, float]], count: int) -> None:
    """One replica stays; all others come, go and die while calls run."""
    members: list[Server] = []

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        async def call(number: int) -> Completion:
            await clock.sleep(number * 0.7)
            return await answer(fleet, asking(f"call {number}", 20))

        calls = [asyncio.create_task(call(number)) for number in range(count)]
        removals = []
        for move, delay_s in moves:
            await clock.sleep(delay_s)
            if move in "add":
                members.append(Server())
                fleet.add(members[-1])
            elif members and move in "remov":
                removals.append(asyncio.create_task(fleet.remove(members.pop())))
            elif members:
                members[-1].kill()
        for number, done in enumerate([await call for call in calls]):
            right = await answer(Server(), asking(f"call {number}", 20))
            assert (done.text, done.token_ids) == (right.text, right.token_ids)
        for removal in removals:
            await removal

    play(body, [Server()], in_flight=2, failover=20)
