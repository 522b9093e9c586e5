"""Replicas short of memory, routers that weigh and hold back: counts, in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.engine.rows import Lookup
from evals.serving.routers import pressure
from evals.serving.routers.engine import BusyReplica, KvPool
from evals.serving.routers.policies import Wire
from evals.serving.routers.replicas import BLOCK_TOKENS, block_hashes
from evals.serving.routers.scheduling import KvRouter, ProgramScheduling
from weft.testing import FakeClock

PROMPT = tuple(range(100, 100 + 8 * BLOCK_TOKENS))
OTHER = tuple(range(500, 500 + 8 * BLOCK_TOKENS))
POOL = 16 * BLOCK_TOKENS


def wire(
    prompt: Sequence[int], session: str = "", program: Mapping[str, object] | None = None
) -> Wire:
    body: dict[str, object] = {"prompt": list(prompt)}
    if program:
        body["vllm_xargs"] = {"agentic_context": json.dumps(program)}
    return Wire({"x-dynamo-session-id": session} if session else {}, json.dumps(body).encode())


def replicas(tokens: int = 64 * BLOCK_TOKENS) -> list[BusyReplica]:
    return [BusyReplica(f"replica-{number}", tokens) for number in range(2)]


async def served(replica: BusyReplica, prompt: Sequence[int], priority: int = 0) -> None:
    async for _ in replica.answer(tuple(prompt), BLOCK_TOKENS, priority):
        pass


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 6), st.integers(0, 2)), max_size=20),
    st.sampled_from(["lru", "priority"]),
)
def test_a_pool_never_holds_more_than_it_has_and_keeps_what_runs(
    asked: list[tuple[int, int, int]], eviction: str
) -> None:
    pool = KvPool(POOL, "priority" if eviction == "priority" else "lru")
    running: list[list[int]] = []
    for first, length, priority in asked:
        blocks = block_hashes(tuple(range(first, first + length * BLOCK_TOKENS)))
        while not pool.fits(blocks, 1):
            pool.release(running.pop(0), 1)
        pool.hold(blocks, 1, priority)
        running.append(blocks)
        assert pool.used <= 16
        assert all(pool.hit(each) == len(each) for each in running)
    for each in running:
        pool.release(each, 1)
    assert pool.used == 0


@pytest.mark.parametrize(("eviction", "kept"), [("lru", OTHER), ("priority", PROMPT)])
def test_what_leaves_first(eviction: str, kept: tuple[int, ...]) -> None:
    pool = KvPool(POOL, "priority" if eviction == "priority" else "lru")
    third = block_hashes(tuple(range(900, 900 + 8 * BLOCK_TOKENS)))
    pool.add(block_hashes(PROMPT), 5)
    pool.add(block_hashes(OTHER), 1)
    pool.add(third, 3)
    assert pool.hit(third) == 8
    assert [each for each in (PROMPT, OTHER) if pool.hit(block_hashes(each)) == 8] == [kept]


def test_a_request_waits_for_room_and_one_that_never_fits_says_so() -> None:
    async def run() -> float:
        replica = BusyReplica("one", 12 * BLOCK_TOKENS)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        async with asyncio.TaskGroup() as group:
            group.create_task(served(replica, PROMPT))
            group.create_task(served(replica, OTHER))
        assert replica.running == replica.prefilling == replica.potential([]) == 0
        with pytest.raises(ValueError, match="a pool of 12"):
            await served(replica, (*PROMPT, *OTHER))
        return loop.time() - begun

    alone = len(PROMPT) / 870 + BLOCK_TOKENS * 8 / 375
    assert FakeClock().run(run()) == pytest.approx(2 * alone)


def test_a_queue_draws_a_kv_router_away_from_a_prefix_and_a_session_does_not_move() -> None:
    async def run(affinity: bool) -> bool:
        here = replicas()
        router = KvRouter(here, affinity)
        first = router.choose(wire(PROMPT, "a"))
        assert isinstance(first, BusyReplica)
        await served(first, PROMPT)
        assert router.choose(wire((*PROMPT, 1), "b" if affinity else "a")) is first
        busy = asyncio.create_task(served(first, (*OTHER, *OTHER)))
        await asyncio.sleep(0)
        moved = router.choose(wire((*PROMPT, 1), "a")) is not first
        await busy
        return moved

    assert FakeClock().run(run(affinity=False))
    assert not FakeClock().run(run(affinity=True))


def context(name: str, *, back: bool = True, priority: int = 0) -> dict[str, object]:
    return {"program_id": name, "expected_resume": back, "priority": priority}


async def _ticks() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_full_replica_holds_new_programs_back_until_one_ends() -> None:
    async def run() -> list[str]:
        router = ProgramScheduling(replicas()[:1], 300)  # 128 tokens and 100 for the answer
        order: list[str] = []

        async def one(name: str, priority: int) -> None:
            mine = wire(PROMPT, program=context(name, back=False, priority=priority))
            await router.admit(mine)
            order.append(name)
            router.choose(mine)
            await asyncio.sleep(1.0)
            router.ended(mine)

        async with asyncio.TaskGroup() as group:
            for name, priority in (("first", 0), ("late", 1), ("urgent", 2)):
                group.create_task(one(name, priority))
            await _ticks()
            assert order == ["first"]
        return order

    assert FakeClock().run(run()) == ["first", "urgent", "late"]


@pytest.mark.parametrize(("ttl_s", "waits"), [(0.0, False), (10.0, True)])
def test_who_runs_a_tool_keeps_the_room_for_the_time_to_live(ttl_s: float, waits: bool) -> None:
    async def run() -> float:
        router = ProgramScheduling(replicas()[:1], 300, ttl_s)
        mine = wire(PROMPT, program=context("agent"))
        await router.admit(mine)
        router.ended(mine)
        begun = asyncio.get_running_loop().time()
        other = wire(OTHER, program=context("other"))
        await router.admit(other)
        router.ended(other)
        return asyncio.get_running_loop().time() - begun

    assert FakeClock().run(run()) == pytest.approx(ttl_s if waits else 0.0)


def test_a_request_that_is_cancelled_while_held_back_leaves_nothing() -> None:
    async def run() -> None:
        router = ProgramScheduling(replicas()[:1], 300)
        mine, other = wire(PROMPT, program=context("a")), wire(OTHER, program=context("b"))
        await router.admit(mine)
        held = asyncio.create_task(router.admit(other))
        await _ticks()
        held.cancel()
        with pytest.raises(asyncio.CancelledError):
            await held
        router.ended(other)
        router.ended(mine)
        third = wire(OTHER, program=context("c"))
        await router.admit(third)
        router.ended(third)

    FakeClock().run(run())


def test_the_counts_at_small_size_are_the_same_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pressure, "SIZES", (4_096,))
    monkeypatch.setattr(pressure, "LOADS", (pressure.LOAD,))
    found = pressure.rows(quick=True, programs=16)
    value, where = Lookup(found), pressure.case(4_096, pressure.LOAD)
    hits = {name: value(where, name, "hit") for name in pressure.SYSTEMS}
    assert hits == HITS
    assert len({value(where, name, "looked_up") for name in pressure.SYSTEMS}) == 1
    assert [row.value for row in pressure.rows(quick=True, programs=16)] == [
        row.value for row in found
    ]
    assert all(name in pressure.table(found) for name in pressure.SYSTEMS)


HITS = {
    "cache_aware_without": 19_632,
    "binding_with": 19_632,
    "scheduling_with": 19_632,
    "scheduling_ttl_with": 19_632,
    "kv_without": 15_952,
    "kv_session_with": 19_952,
    "kv_priority_with": 15_952,
    "kv_scale_4_without": 16_784,
    "kv_scale_16_without": 16_784,
}
