"""Replicas that are served elsewhere after they broke: found, started when needed, given up."""

from __future__ import annotations

import asyncio

import pytest

from tests.serving.fleet.fleet_calls import answer, asking, settle
from tests.serving.fleet.server import Server
from weft.core.errors import ModelUnavailable, StartError
from weft.core.ports import ModelClient
from weft.serving.fleet import Fleet, FleetOptions
from weft.testing import FakeClock


class Places:
    """Where replicas are: `Locate`. Gives what `found` holds, once each; raises what it holds."""

    def __init__(self, *found: ModelClient | StartError | None) -> None:
        self.found = list(found)
        self.asked: list[tuple[int, bool]] = []
        self.gate: asyncio.Event | None = None

    async def locate(self, number: int, needed: bool) -> ModelClient | None:
        self.asked.append((number, needed))
        if self.gate is not None:
            await self.gate.wait()
        one = self.found.pop(0) if self.found else None
        if isinstance(one, StartError):
            raise one
        return one


def dead() -> Server:
    return Server(down=True)


def test_a_call_goes_on_where_its_replica_is_served_now() -> None:
    first, second = Server(), Server()
    places = Places(second)
    clock = FakeClock()

    async def main() -> None:
        fleet = Fleet([first], FleetOptions(), clock=clock, locate=places.locate)
        clock.call_later(first.prefill_s + 5.5 * first.token_s, first.kill)
        given = await answer(fleet, asking("river", 30))
        assert given.text == (await answer(Server(), asking("river", 30))).text
        assert fleet.stats().resumed == 1
        assert places.asked == [(0, True)]
        await answer(fleet, asking("sea"))
        assert len(second.requests) >= 2
        await fleet.aclose()

    clock.run(main())


def test_what_nobody_waits_for_is_not_asked_to_be_started() -> None:
    server = dead()
    places = Places()
    clock = FakeClock()

    async def main() -> None:
        fleet = Fleet([server, Server()], FleetOptions(), clock=clock, locate=places.locate)
        await answer(fleet, asking())
        await settle()
        await clock.sleep(5)
        assert places.asked
        assert all(asked == (0, False) for asked in places.asked)
        await fleet.aclose()

    clock.run(main())


def test_a_start_may_take_longer_than_an_outage() -> None:
    places = Places(Server())
    clock = FakeClock()

    async def main() -> None:
        places.gate = asyncio.Event()
        fleet = Fleet([dead()], FleetOptions(outage_s=10), clock=clock, locate=places.locate)
        clock.call_later(100, places.gate.set)
        assert (await answer(fleet, asking())).text
        assert clock.now() >= 100
        await fleet.aclose()

    clock.run(main())


def test_a_start_that_fails_is_told_at_once_and_tried_again_for_the_next_call() -> None:
    places = Places(StartError("no memory"), Server())
    clock = FakeClock()

    async def main() -> None:
        fleet = Fleet([dead()], FleetOptions(outage_s=1000), clock=clock, locate=places.locate)
        with pytest.raises(ModelUnavailable, match="no memory"):
            await answer(fleet, asking())
        assert clock.now() < 10
        assert (await answer(fleet, asking())).text
        await fleet.aclose()

    clock.run(main())


def test_after_an_outage_the_next_call_has_it_started() -> None:
    places = Places()
    clock = FakeClock()

    async def main() -> None:
        fleet = Fleet([dead()], FleetOptions(outage_s=20), clock=clock, locate=places.locate)
        with pytest.raises(ModelUnavailable, match="no replica answered for 20 s"):
            await answer(fleet, asking())
        await clock.sleep(1000)
        assert places.asked[-1] == (0, False)
        places.found = [None, Server()]
        assert (await answer(fleet, asking())).text
        await fleet.aclose()

    clock.run(main())


def test_without_a_way_to_locate_an_outage_refuses_calls() -> None:
    clock = FakeClock()

    async def main() -> None:
        fleet = Fleet([dead()], FleetOptions(outage_s=20), clock=clock)
        for _ in range(2):
            with pytest.raises(ModelUnavailable, match="no replica answered for 20 s"):
                await answer(fleet, asking())
        await fleet.aclose()

    clock.run(main())
