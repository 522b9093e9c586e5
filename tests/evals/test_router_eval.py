"""Scripted replicas and routers: counts at small size, and what a router can read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.engine.rows import Lookup
from evals.serving.programs import Call, Output, Program, Tool
from evals.serving.routers.policies import (
    CacheAware,
    ConsistentHash,
    Programs,
    RoundRobin,
    Several,
    Wire,
)
from evals.serving.routers.replicas import BLOCK_TOKENS, PrefixCache, Replica
from evals.serving.routers.section import CASE, SYSTEMS, played, rows, table

PROMPT = tuple(range(100, 180))
CHAIN = Program(
    "chain",
    "chain",
    0.0,
    (
        Call("one", (PROMPT,), 16, prefix="history"),
        Tool("look", 1.0, tuple(range(20)), ("one",)),
        Call("two", (PROMPT, Output("one"), Output("look")), 16, prefix="history"),
    ),
)


def replicas(count: int = 4) -> list[Replica]:
    return [Replica(f"replica-{number}") for number in range(count)]


def wire(prompt: Sequence[int] = (1,), session: str = "", **context: object) -> Wire:
    body: dict[str, object] = {"prompt": list(prompt)}
    if context:
        body["vllm_xargs"] = {"agentic_context": json.dumps(context)}
    return Wire({"x-session-id": session} if session else {}, json.dumps(body).encode())


@given(st.lists(st.lists(st.integers(0, 2), max_size=80), max_size=8))
def test_an_endless_cache_hits_the_longest_beginning_in_whole_blocks(
    prompts: list[list[int]],
) -> None:
    cache, before = PrefixCache(10**6), list[list[int]]()
    for prompt in prompts:
        most = 0
        for other in before:
            same = 0
            while same < min(len(prompt) - 1, len(other)) and prompt[same] == other[same]:
                same += 1
            most = max(most, same - same % BLOCK_TOKENS)
        assert cache.hit_tokens(tuple(prompt)) == most
        cache.add(tuple(prompt))
        before.append(prompt)


def test_a_full_cache_forgets_the_prompt_used_longest_ago_from_its_end() -> None:
    cache, other = PrefixCache(len(PROMPT)), tuple(range(16))
    cache.add(PROMPT)
    cache.add(other)
    assert cache.hit_tokens((*other, 0)) == 16
    assert cache.hit_tokens((*PROMPT, 0)) == len(PROMPT) - BLOCK_TOKENS


def test_a_session_decides_and_without_one_the_body_does() -> None:
    router = ConsistentHash(replicas())
    sessions = {router.choose(wire((n,), "s")).name for n in range(40)}
    bodies = {router.choose(wire((n,))).name for n in range(40)}
    assert len(sessions) == 1
    assert len(bodies) == 4
    assert len({router.choose(wire(session=f"s{n}")).name for n in range(40)}) == 4


def test_a_cache_aware_router_follows_long_prefixes_only() -> None:
    router = CacheAware(replicas())
    first = router.choose(wire(PROMPT))
    assert router.choose(wire((*PROMPT, 1, 2))) is first
    assert router.choose(wire((*PROMPT, *range(200)))) is not first


def test_a_program_stays_until_it_does_not_come_back() -> None:
    router = Programs(replicas(2), "least_program_count")
    a, b = wire(program_id="a", expected_resume=True), wire(program_id="b", expected_resume=True)
    home = router.choose(a)
    assert router.choose(b) is not home
    router.ended(a)
    assert router.choose(a) is home
    router.ended(a)
    last = wire(program_id="a", expected_resume=False)
    router.choose(last)
    assert router.bound == 2
    router.ended(last)
    assert router.bound == 1
    assert router.choose(wire(program_id="c")) is home
    assert RoundRobin(replicas(2)).choose(a).name == "replica-0"


def test_routers_that_share_nothing_agree_about_sessions_only() -> None:
    all_ = replicas()
    hashing = Several([ConsistentHash(all_), ConsistentHash(all_)])
    assert len({hashing.choose(wire((n,), "s")).name for n in range(10)}) == 1
    guessing = Several([CacheAware(all_), CacheAware(all_[::-1])])
    first, second = wire(PROMPT), wire((*PROMPT, 1))
    assert guessing.choose(first) is not guessing.choose(second)
    guessing.ended(first)
    guessing.ended(second)


@pytest.mark.parametrize(("system", "hit"), [("round_robin", 0), ("hash_with", 96)])
def test_the_second_turn_finds_the_first_where_its_session_is(system: str, hit: int) -> None:
    found, _ = played(SYSTEMS[system], [CHAIN])
    assert found.counted.prefix_cache_queries == 80 + 116
    assert found.counted.prefix_cache_hits == hit
    assert found.record.outputs.keys() == {("chain", "one"), ("chain", "two")}


@pytest.mark.parametrize("name", ["cache_aware_with", "count_with"])
def test_the_last_call_of_a_program_ends_it(name: str) -> None:
    made: list[Programs] = []

    def make(all_: Sequence[Replica]) -> Programs:
        router = SYSTEMS[name].make(all_)
        assert isinstance(router, Programs)
        made.append(router)
        return router

    played(replace(SYSTEMS[name], make=make), [CHAIN])
    assert [router.bound for router in made] == [0]


def test_the_counts_at_small_size() -> None:
    found = rows(quick=True, programs=16)
    value = Lookup(found)
    hits = {name: value(CASE, name, "hit") for name in SYSTEMS}
    assert hits == HITS
    assert {value(CASE, name, "looked_up") for name in SYSTEMS} == {LOOKED_UP}
    assert [row.value for row in rows(quick=True, programs=16)] == [row.value for row in found]
    assert all(name in table(found) for name in SYSTEMS)


LOOKED_UP = 22_454
HITS = {
    "round_robin": 2_704,
    "hash_without": 6_352,
    "hash_with": 11_168,
    "cache_aware_without": 11_616,
    "cache_aware_with": 12_000,
    "count_with": 11_424,
    "two_cache_aware_without": 11_264,
    "two_hash_with": 11_168,
    "weft_fleet": 11_424,
}
