"""Fleets that follow a source of endpoints, and pools that follow a fleet."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Collection, Sequence

import pytest

from tests.serving.fleet.fleet_calls import answer, asking, settle
from tests.serving.fleet.server import Server
from weft.errors import ModelUnavailable, StoreError
from weft.serve import DnsEndpoints, FleetOptions, FollowingFleet, ScalingOptions, autoscale
from weft.serving.fleet.discovery import resolve
from weft.testing import FakeClock


class Names:
    """A resolver whose answers are set; an `OSError` is raised."""

    def __init__(self, *addresses: str) -> None:
        self.now: Sequence[str] | OSError = addresses
        self.asked: list[tuple[str, int]] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        if isinstance(self.now, OSError):
            raise self.now
        return self.now


class Cluster:
    """Servers by their base URLs, made when they are first asked for."""

    def __init__(self) -> None:
        self.servers: dict[str, Server] = {}
        self.made: list[str] = []

    def client(self, url: str) -> Server:
        self.made.append(url)
        self.servers[url] = Server()
        return self.servers[url]

    def open(self) -> set[str]:
        return {url for url, server in self.servers.items() if not server.closed}


def url(number: int) -> str:
    return f"http://10.0.0.{number}:8000/v1"


def following(names: Names, cluster: Cluster, clock: FakeClock) -> FollowingFleet:
    source = DnsEndpoints("http://vllm:8000/v1", clock=clock, resolve=names.resolve)
    return FollowingFleet("m", source, cluster.client, FleetOptions(outage_s=60), clock=clock)


def test_each_address_of_a_name_is_a_replica_while_it_is_there() -> None:
    clock, names, cluster = FakeClock(), Names("10.0.0.1", "10.0.0.2"), Cluster()

    async def main() -> None:
        fleet = following(names, cluster, clock)
        await answer(fleet, asking())
        assert cluster.open() == {url(1), url(2)}
        names.now = ("10.0.0.2", "10.0.0.3", "10.0.0.3")
        await clock.sleep(11)
        assert cluster.open() == {url(2), url(3)}
        assert fleet.load().usable == 2
        names.now = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
        await clock.sleep(11)
        assert cluster.open() == {url(1), url(2), url(3)}
        assert cluster.made.count(url(2)) == 1
        await fleet.aclose()
        assert not cluster.open()

    clock.run(main())
    assert set(names.asked) == {("vllm", 8000)}


def test_a_resolver_that_fails_takes_no_replica_away(caplog: pytest.LogCaptureFixture) -> None:
    clock, names, cluster = FakeClock(), Names("10.0.0.1"), Cluster()

    async def main() -> None:
        fleet = following(names, cluster, clock)
        await answer(fleet, asking())
        names.now = socket.gaierror(-3, "Temporary failure in name resolution")
        await clock.sleep(35)
        assert cluster.open() == {url(1)}
        await answer(fleet, asking())
        await fleet.aclose()

    with caplog.at_level(logging.WARNING):
        clock.run(main())
    assert "vllm is not resolved at present: Temporary failure" in caplog.text


def test_calls_and_questions_wait_for_the_first_replica() -> None:
    clock, names, cluster = FakeClock(), Names(), Cluster()

    async def main() -> None:
        fleet = following(names, cluster, clock)
        call = asyncio.create_task(answer(fleet, asking()))
        asked = asyncio.create_task(fleet.capabilities())
        await clock.sleep(25)
        assert not call.done()
        assert not asked.done()
        names.now = ("10.0.0.1",)
        assert (await call).text
        assert (await asked).token_ids
        await fleet.aclose()

    clock.run(main())


def test_a_name_without_addresses_is_an_error_in_the_end() -> None:
    clock, names, cluster = FakeClock(), Names(), Cluster()

    async def main() -> None:
        fleet = following(names, cluster, clock)
        with pytest.raises(ModelUnavailable, match="no replica answered for 60 s: there is none"):
            await answer(fleet, asking())
        with pytest.raises(ModelUnavailable, match="first replica of m"):
            await fleet.capabilities()
        await fleet.aclose()

    clock.run(main())


def test_a_source_that_gives_up_is_an_error_of_calls() -> None:
    class Source:
        async def watch(self) -> AsyncGenerator[Collection[str], None]:
            yield ()
            raise StoreError("the cluster is gone")

    clock = FakeClock()

    async def main() -> None:
        fleet = FollowingFleet("m", Source(), Cluster().client, clock=clock)
        with pytest.raises(ModelUnavailable):
            await answer(fleet, asking())
        with pytest.raises(ModelUnavailable, match=r"replicas of m are unknown: .*cluster is gone"):
            await answer(fleet, asking())
        await fleet.aclose()

    clock.run(main())


def test_a_fleet_that_was_never_used_asks_nobody() -> None:
    clock, names = FakeClock(), Names("10.0.0.1")

    async def main() -> None:
        fleet = following(names, Cluster(), clock)
        await fleet.aclose()
        await fleet.aclose()

    clock.run(main())
    assert not names.asked


@pytest.mark.parametrize("wrong", ["https://vllm/v1", "vllm:8000", "http:///v1"])
def test_only_plain_http_has_addresses_for_names(wrong: str) -> None:
    with pytest.raises(ValueError, match="http://HOST:PORT"):
        DnsEndpoints(wrong)


def test_addresses_of_version_6_are_bracketed() -> None:
    clock, names, cluster = FakeClock(), Names("fd00::1"), Cluster()

    async def main() -> None:
        fleet = following(names, cluster, clock)
        await answer(fleet, asking())
        await fleet.aclose()

    clock.run(main())
    assert cluster.made == ["http://[fd00::1]:8000/v1"]


def test_the_resolver_of_this_machine_finds_it() -> None:
    assert "127.0.0.1" in asyncio.run(resolve("localhost", 80))


class Pool:
    """A `ReplicaPool` whose replicas take a while to start, and the source that tells of them."""

    def __init__(self, clock: FakeClock, names: Names, start_s: float) -> None:
        self.clock, self.names, self.start_s = clock, names, start_s
        self.asked: list[int] = []

    async def scale(self, replicas: int) -> None:
        self.asked.append(replicas)
        self.clock.call_later(self.start_s, lambda: self._set(replicas))

    def _set(self, replicas: int) -> None:
        self.names.now = [f"10.0.0.{number}" for number in range(replicas)]


def test_a_pool_grows_with_the_queue_and_shrinks_after_it() -> None:
    clock, names, cluster = FakeClock(), Names(), Cluster()
    options = ScalingOptions(least=1, most=4, target_calls=4, cooldown_s=20, window_s=60)

    async def main() -> None:
        pool = Pool(clock, names, start_s=15)
        source = DnsEndpoints("http://v:8000/v1", interval_s=1, clock=clock, resolve=names.resolve)
        fleet = FollowingFleet(
            "m", source, cluster.client, FleetOptions(in_flight=4, outage_s=60), clock=clock
        )
        scaling = asyncio.create_task(autoscale(fleet, pool, options, clock=clock))
        calls = [asyncio.create_task(answer(fleet, asking(f"{n}", 400))) for n in range(100)]
        answers = [await call for call in calls]
        assert pool.asked == [1, 2, 4]
        await clock.sleep(200)
        assert pool.asked == [1, 2, 4, 1]
        assert fleet.load().usable == 1
        assert len(cluster.open()) == 1
        for number, done in enumerate(answers):
            assert done.text == (await answer(Server(), asking(f"{number}", 400))).text
        await answer(fleet, asking())
        scaling.cancel()
        await settle()
        await fleet.aclose()

    clock.run(main())
