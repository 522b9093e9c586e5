"""Replicas on the nodes of a cluster: where they are, and what becomes of them when nodes die."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cluster.fake_replicas import FakeNodes, FakeReplicaBridge
from tests.serving.fleet.fleet_calls import answer, asking
from tests.serving.fleet.server import Server
from weft.cluster.ray_fleet import RayFleet
from weft.cluster.replica_bridge import ReplicaNeeds
from weft.core.errors import ClusterError
from weft.errors import ModelNotFound, ModelUnavailable, SpecError, StartError
from weft.serve import (
    FleetOptions,
    FollowingFleet,
    OpenAIModel,
    RayReplicas,
    ScalingOptions,
    ServeSpec,
)
from weft.serve import autoscale as autoscaled
from weft.serving.vllm.supervise.replica_process import RestartPolicy

SPEC = ServeSpec("m", tp=2, device="cuda", api_key_env="KEY_OF_M")
QUICK = partial(RestartPolicy, first_s=0.001, most=3)
MANY = partial(RestartPolicy, first_s=0.001, most=1_000)
Case = Callable[[RayReplicas, FakeNodes, FakeReplicaBridge], Awaitable[Any]]


def play(case: Case, *nodes: str, spec: ServeSpec = SPEC, **options: Any) -> FakeNodes:
    async def main() -> FakeNodes:
        cluster = FakeNodes(*nodes)
        bridge = FakeReplicaBridge(cluster)
        options.setdefault("restarts", QUICK)
        replicas = RayReplicas(spec, connect=bridge.connect, **options)
        try:
            async with asyncio.timeout(60):
                await case(replicas, cluster, bridge)
        finally:
            await replicas.aclose()
            await bridge.aclose()
        assert not cluster.running()
        return cluster

    return asyncio.run(main())


async def urls(replicas: RayReplicas, number: int, *, beside: set[str] = frozenset()) -> list[str]:  # type: ignore[assignment]
    """The addresses, once there are so many, and none of `beside`."""
    async for found in replicas.watch():
        if len(found) == number and not beside & set(found):
            return sorted(found)
    raise AssertionError


def test_each_replica_has_a_node_and_only_names_of_secrets_travel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KEY_OF_M", "sk-planted")

    async def case(replicas: RayReplicas, nodes: FakeNodes, _: FakeReplicaBridge) -> None:
        await replicas.scale(2)
        assert await urls(replicas, 2) == ["http://10.0.0.1:8000/v1", "http://10.0.0.2:8001/v1"]
        assert [state.status for state in replicas.states] == ["ready", "ready"]
        assert replicas.states[0].log == "10.0.0.1:0.log"

    nodes = play(case, "10.0.0.1", "10.0.0.2", labels=["fast"])
    assert nodes.needs[0] == ReplicaNeeds(2, "cuda", ("fast",))
    assert nodes.settings[0]["spec"]["api_key_env"] == "KEY_OF_M"
    assert "sk-planted" not in str(nodes.settings)


def test_a_node_that_dies_takes_its_replica_to_another_one() -> None:
    async def case(replicas: RayReplicas, nodes: FakeNodes, _: FakeReplicaBridge) -> None:
        await replicas.scale(1)
        before = await urls(replicas, 1)
        nodes.kill("a")
        assert await urls(replicas, 1, beside=set(before)) == ["http://b:8001/v1"]
        assert [(one.status, one.restarts) for one in replicas.states] == [("ready", 1)]

    play(case, "a", "b")


def test_without_room_a_replica_waits_for_a_node() -> None:
    async def case(replicas: RayReplicas, nodes: FakeNodes, _: FakeReplicaBridge) -> None:
        await replicas.scale(2)
        await urls(replicas, 1)
        assert [one.status for one in replicas.states] == ["ready", "starting"]
        nodes.add("b")
        await urls(replicas, 2)
        await replicas.scale(3)  # the third waits, and is taken back
        await replicas.scale(2)
        await urls(replicas, 2)

    assert len(play(case, "a").placed) == 2


def test_a_crash_that_its_supervisor_mends_changes_no_address() -> None:
    async def case(replicas: RayReplicas, nodes: FakeNodes, _: FakeReplicaBridge) -> None:
        await replicas.scale(1)
        await urls(replicas, 1)
        nodes.placed[0].restart()
        while replicas.states[0].status == "ready":
            await asyncio.sleep(0)
        assert await urls(replicas, 1) == [nodes.placed[0].url]
        nodes.kill("a")
        while replicas.states[0].restarts < 2:  # one there, and the loss of the node
            await asyncio.sleep(0)

    play(case, "a")


def test_a_replica_that_leaves_gets_no_more_calls_and_time_for_the_others() -> None:
    async def case(replicas: RayReplicas, nodes: FakeNodes, _: FakeReplicaBridge) -> None:
        await replicas.scale(2)
        await urls(replicas, 2)
        await replicas.scale(1)
        assert await urls(replicas, 1) == [nodes.placed[0].url]
        while not nodes.placed[1].stops:
            await asyncio.sleep(0)
        assert nodes.placed[1].stops == [30.0]
        assert not nodes.placed[1].is_removed
        await replicas.scale(2)  # the one that leaves is not taken back
        nodes.add("c")
        assert nodes.placed[1].url not in await urls(replicas, 2)
        nodes.placed[1].change(ended=True)
        while not nodes.placed[1].is_removed:
            await asyncio.sleep(0)

    play(case, "a", "b")


def test_what_no_restart_mends_is_told_to_the_calls() -> None:
    async def case(replicas: RayReplicas, nodes: FakeNodes, _: FakeReplicaBridge) -> None:
        nodes.error = ModelNotFound("there is no model m", hint="copy it there")
        await replicas.scale(1)
        with pytest.raises(ModelNotFound, match="no model m"):
            await urls(replicas, 1)
        fleet = FollowingFleet("m", replicas, lambda _: Server())
        with pytest.raises(ModelUnavailable, match="no model m"):
            await fleet.capabilities()
        await fleet.aclose()
        waiting = FollowingFleet("m", replicas, lambda _: Server())
        with pytest.raises(ModelUnavailable, match="no model m"):
            await answer(waiting, asking())
        await waiting.aclose()
        nodes.error = None
        await replicas.scale(1)
        await urls(replicas, 1)

    assert len(play(case, "a").placed) == 2


def test_a_replica_that_is_lost_again_and_again_is_given_up() -> None:
    async def case(replicas: RayReplicas, nodes: FakeNodes, _: FakeReplicaBridge) -> None:
        await replicas.scale(1)

        async def lose_all() -> None:
            async for _urls in replicas.watch():
                for one in nodes.running():
                    one.lose()

        with pytest.raises(StartError, match=r"lost 4 times within 10 min .* the node is dead"):
            await lose_all()

    assert len(play(case, "a").placed) == 4


def test_a_bridge_that_dies_is_replaced_with_its_replicas() -> None:
    async def case(replicas: RayReplicas, nodes: FakeNodes, bridge: FakeReplicaBridge) -> None:
        await replicas.scale(2)
        before = await urls(replicas, 2)
        bridge.crash()
        await urls(replicas, 2, beside=set(before))
        assert [one.is_removed for one in nodes.placed] == [True, True, False, False]
        assert nodes.placed[0].stops == [0.0]

    play(case, "a", "b")


def test_without_a_cluster_it_is_tried_again_unless_that_is_hopeless() -> None:
    async def case(replicas: RayReplicas, nodes: FakeNodes, bridge: FakeReplicaBridge) -> None:
        bridge.fails = ClusterError("nobody listens")
        await replicas.scale(1)
        with pytest.raises(StartError, match=r"lost 4 times .* nobody listens"):
            await urls(replicas, 1)
        bridge.fails = ClusterError("Ray is not installed", retryable=False)
        await replicas.scale(1)
        with pytest.raises(ClusterError, match="not installed"):
            await urls(replicas, 1)

    play(case)


def test_a_fleet_grows_with_its_queue_and_its_calls_go_to_the_replicas() -> None:
    """The policy, the pool and the source together; time is that of the policy alone."""
    servers: dict[str, Server] = {}

    def client(url: str) -> Server:
        return servers.setdefault(url, Server())

    async def case(replicas: RayReplicas, nodes: FakeNodes, _: FakeReplicaBridge) -> None:
        fleet = FollowingFleet("m", replicas, client)
        options = ScalingOptions(least=1, most=2, target_calls=2, cooldown_s=0)
        scaling = asyncio.create_task(autoscaled(fleet, replicas, options, interval_s=0.001))
        calls = [asyncio.create_task(answer(fleet, asking(str(n)))) for n in range(4)]
        await urls(replicas, 2)
        await asyncio.wait(calls)
        scaling.cancel()
        await fleet.aclose()

    play(case, "a", "b")
    assert sum(len(server.requests) for server in servers.values()) == 4


def drained(nodes: FakeNodes, dice: random.Random, chance: float = 1.0) -> None:
    """Of replicas that leave, some have no more requests."""
    for one in nodes.running():
        if one.stops and dice.random() < chance:
            one.change(ended=True)


async def drain(nodes: FakeNodes, dice: random.Random) -> None:
    while True:
        drained(nodes, dice)
        await asyncio.sleep(0)


def lost(nodes: FakeNodes, dice: random.Random) -> None:
    for one in nodes.running():
        if dice.random() < 0.2:
            one.lose()


def test_a_fleet_of_its_own_has_its_replicas_from_the_first_call_to_the_end() -> None:
    async def case(replicas: RayReplicas, nodes: FakeNodes, _: FakeReplicaBridge) -> None:
        bounds = ScalingOptions(least=2, most=2)
        fleet = RayFleet(replicas, bounds, FleetOptions(), lambda _: Server())
        assert not nodes.placed
        assert (await answer(fleet, asking())).text
        await urls(replicas, 2)
        await fleet.aclose()
        assert not nodes.running()

    play(case, "a", "b")


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_after_any_losses_there_are_as_many_as_were_asked_for(seed: int, sizes: list[int]) -> None:
    dice = random.Random(seed)

    async def case(replicas: RayReplicas, nodes: FakeNodes, bridge: FakeReplicaBridge) -> None:
        for size in sizes:
            await replicas.scale(size)
            lost(nodes, dice)
            drained(nodes, dice, 0.5)
            for _pass in range(dice.randrange(20)):
                await asyncio.sleep(0)
        draining = asyncio.create_task(drain(nodes, dice))
        found = await urls(replicas, sizes[-1])
        assert set(found) <= {one.url for one in nodes.running() if not one.stops}
        draining.cancel()

    play(case, *"abcdefgh", restarts=MANY)


@pytest.mark.parametrize(
    ("needs", "gpus", "bundle"),
    [
        (ReplicaNeeds(4, "cuda"), False, {"CPU": 1.0, "GPU": 4.0}),
        (ReplicaNeeds(4, "auto"), True, {"CPU": 1.0, "GPU": 4.0}),
        (ReplicaNeeds(4, "auto"), False, {"CPU": 4.0}),
        (ReplicaNeeds(2, "cpu", ("fast",)), True, {"CPU": 2.0, "fast": 0.001}),
    ],
)
def test_a_bundle_has_what_the_ranks_need(
    needs: ReplicaNeeds, gpus: bool, bundle: dict[str, float]
) -> None:
    assert needs.bundle(gpus=gpus) == bundle


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (replace(SPEC, nodes=2, tp=2), "a server on one node"),
        (replace(SPEC, extra=("--nnodes", "2")), "a server on one node"),
        (replace(SPEC, extra=("--headless",)), "a server on one node"),
        (replace(SPEC, host="0.0.0.0"), "at its node's address"),
    ],
)
def test_specs_that_no_single_node_can_serve_are_refused(spec: ServeSpec, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        RayReplicas(spec)


def test_there_are_no_less_than_none() -> None:
    async def case(replicas: RayReplicas, nodes: FakeNodes, _: FakeReplicaBridge) -> None:
        with pytest.raises(ValueError, match="no -1 replicas"):
            await replicas.scale(-1)

    play(case)


def test_clients_have_the_name_and_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_M", "sk-planted")

    async def case(replicas: RayReplicas, nodes: FakeNodes, _: FakeReplicaBridge) -> None:
        client = replicas.client("http://10.0.0.1:8000/v1")
        assert isinstance(client, OpenAIModel)
        assert client.model == "m"
        assert "sk-planted" not in repr(client)
        await client.aclose()

    play(case)
