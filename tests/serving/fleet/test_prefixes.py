from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving.fleet.fleet_calls import LONG, answer, asking, play, settle
from tests.serving.fleet.server import LETTERS, Fate, Server
from weft.core.errors import ModelRequestError
from weft.core.ports import ModelRequest, Program, Sampling
from weft.core.values import Completion, Message, ToolSpec
from weft.serving.fleet import Fleet, FleetStats, admission
from weft.serving.fleet.replica import BLOCK_CHARS, Prefixes, chain_of
from weft.testing import FakeClock


def shared(a: ModelRequest, b: ModelRequest) -> int:
    pairs = zip(chain_of(a), chain_of(b), strict=False)
    return next(
        (n for n, (x, y) in enumerate(pairs) if x != y), min(map(len, map(chain_of, (a, b))))
    )


def test_chains_share_what_prompts_share() -> None:
    a, b = asking(LONG + "a" * 200), asking(LONG + "b" * 200)
    assert shared(a, b) == len(LONG + "user" + "\x01" * 2) // BLOCK_CHARS
    assert shared(a, asking("x" + LONG)) == 0
    tool = ToolSpec("t", "does", {"type": "object", "description": "d" * 200})
    assert shared(a, asking(LONG, tools=(tool,))) == 0
    assert shared(asking(LONG, tools=(tool,)), asking(LONG + "x", tools=(tool,))) > 10
    assert shared(a, asking(LONG, extra={"chat_template_kwargs": {"thinking": True}})) == 0
    turn = Message("user", LONG)
    one = ModelRequest((turn, Message("assistant", "y" * 200)))
    two = ModelRequest((turn, Message("user", "y" * 200)))
    assert shared(one, two) == shared(a, one)


def test_token_ids_share_with_token_ids() -> None:
    a = ModelRequest(prompt_token_ids=tuple(range(100)))
    b = ModelRequest(prompt_token_ids=(*range(70), *range(30)))
    assert (len(chain_of(a)), shared(a, b)) == (3, 2)


chains = st.lists(st.integers(0, 3), max_size=8).map(
    lambda digits: [hash(tuple(digits[: end + 1])) for end in range(len(digits))]
)


@given(st.lists(st.tuples(chains, st.sampled_from(["begin", "computed", "failed"])), max_size=30))
def test_the_index_equals_a_set_of_prefixes(steps: list[tuple[list[int], str]]) -> None:
    prefixes = Prefixes()
    computed: set[int] = set()
    pending: list[list[int]] = []
    for chain, what in steps:
        if what == "begin" or not pending:
            prefixes.begin(chain)
            pending.append(chain)
        else:
            ended = pending.pop(0)
            prefixes.end(ended, computed=what == "computed")
            computed |= set(ended) if what == "computed" else set()
        soon = computed.union(*pending)
        for other, _ in steps:
            assert prefixes.computed(other) == sum(block in computed for block in other)
            assert prefixes.known(other) == sum(block in soon for block in other)


def test_memory_is_bounded_and_ends_go_before_beginnings() -> None:
    prefixes = Prefixes(capacity=4)
    for chain in ([1, 2, 3, 4], [1, 2, 30]):
        prefixes.begin(chain)
        prefixes.end(chain, computed=True)
    assert prefixes.computed([1, 2, 3, 4]) == 3
    assert prefixes.computed([1, 2, 30]) == 3
    prefixes.begin([7])
    prefixes.end([7], computed=True)
    assert prefixes.computed([1, 2, 3]) == 2


def siblings(servers: list[Server], count: int, prefix: str = LONG, **options: Any) -> FleetStats:
    async def body(fleet: Fleet, clock: FakeClock) -> FleetStats:
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(answer(fleet, asking(f"{prefix}{number}")))
            await settle()
            if options.get("warm_prefix", True) and len(prefix) >= 1000:
                assert [server.running for server in servers] == [1] + [0] * (len(servers) - 1)
        return fleet.stats()

    return play(body, servers, **options)


def test_siblings_wait_for_one_prefill() -> None:
    stats = siblings([Server()], 5)
    assert (stats.held_for_prefix, stats.sent) == (4, 5)


def test_a_short_prefix_or_one_that_is_cached_is_not_waited_for() -> None:
    assert siblings([Server()], 5, prefix="s" * 500).held_for_prefix == 0
    assert siblings([Server()], 5, warm_prefix=False).held_for_prefix == 0

    async def body(fleet: Fleet, clock: FakeClock) -> int:
        await answer(fleet, asking(LONG))
        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(answer(fleet, asking(f"{LONG}{number}")))
        return fleet.stats().held_for_prefix

    assert play(body, [Server()]) == 0


@pytest.mark.parametrize("how", ["cancelled", "refused"])
def test_when_the_leader_leaves_the_next_one_leads(how: str) -> None:
    fates = iter([Fate(overloaded_s=0.5)] if how == "refused" else [])
    server = Server(lambda _: next(fates, Fate()))

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        tasks = [asyncio.create_task(answer(fleet, asking(f"{LONG}{n}"))) for n in range(4)]
        await clock.sleep(0.01)
        if how == "cancelled":
            assert server.running == 1
            tasks[0].cancel()
            await settle()
            assert server.running == 1
        await asyncio.wait(tasks)
        assert [task.cancelled() for task in tasks] == [how == "cancelled", False, False, False]

    play(body, [server])
    assert server.prefills == (3 if how == "cancelled" else 4)


def test_the_wait_for_a_prefix_ends_after_a_while() -> None:
    """A leader that waits in the server's own queue does not keep its siblings for ever."""
    server = Server(prefill_s=100.0)

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        tasks = [asyncio.create_task(answer(fleet, asking(f"{LONG}{n}"))) for n in range(3)]
        await clock.sleep(1.9)
        assert server.running == 1
        await clock.sleep(0.2)
        assert server.running == 3
        await asyncio.wait(tasks)

    play(body, [server], hold_s=2.0)


def test_calls_go_where_their_prefix_is() -> None:
    servers = [Server(), Server()]

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        for text in ("a" * 2000, "b" * 2000, "b" * 2000 + "x", "a" * 2000 + "y", "b" * 2000 + "z"):
            await answer(fleet, asking(text))

    play(body, servers)
    firsts = [[request.messages[0].content[0] for request in server.requests] for server in servers]
    assert firsts == [["a", "a"], ["b", "b", "b"]]


@pytest.mark.parametrize("group", [{"cache_prefix": "tree"}, {"program": Program("p")}])
def test_calls_of_one_group_stay_together(group: dict[str, Any]) -> None:
    def count(affinity: bool) -> list[int]:
        servers = [Server(), Server()]

        async def body(fleet: Fleet, clock: FakeClock) -> None:
            async with asyncio.TaskGroup() as tasks:
                for number in range(6):
                    tasks.create_task(answer(fleet, asking(str(number), **group)))

        play(body, servers, affinity=affinity)
        return [len(server.requests) for server in servers]

    assert count(affinity=True) == [6, 0]
    assert count(affinity=False) == [3, 3]


def test_the_threads_of_a_tree_stay_on_one_replica() -> None:
    """Parent, children of its tokens, and the join; several trees at once, each with a program."""
    servers = [Server(), Server(), Server()]

    async def tree(fleet: Fleet, number: int) -> None:
        shared = (LETTERS[number],) + tuple(LETTERS) * 40
        program = Program(f"tree {number}")

        async def thread(*header: int) -> Completion:
            sampling = Sampling(max_tokens=5 + len(header), temperature=0)
            context = shared + header
            request = ModelRequest(prompt_token_ids=context, sampling=sampling, program=program)
            return await answer(fleet, request)

        parent = await thread()
        async with asyncio.TaskGroup() as fork:
            children = [
                fork.create_task(thread(*parent.token_ids, LETTERS[child])) for child in range(6)
            ]
        written = [token for child in children for token in child.result().token_ids]
        await thread(*parent.token_ids, *written)

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        async with asyncio.TaskGroup() as trees:
            for number in range(3):
                trees.create_task(tree(fleet, number))

    play(body, servers)
    trees = [
        {request.program.id for request in server.requests if request.program} for server in servers
    ]
    assert sorted(map(sorted, trees)) == [[f"tree {number}"] for number in range(3)]


def test_groups_seen_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_REMEMBERED_GROUPS", 2)
    servers = [Server(), Server()]

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        for tree in ("oak", "elm", "ash", "oak"):
            await answer(fleet, asking(tree, cache_prefix=tree))

    play(body, servers)
    trees = [[request.messages[0].content for request in server.requests] for server in servers]
    # The oak's place is lost, so it goes where there was less to do so far.
    assert trees == [["oak", "ash"], ["elm", "oak"]]


def test_a_group_overflows_when_its_replica_is_much_busier() -> None:
    servers = [Server(), Server()]

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in range(12):
                tasks.create_task(answer(fleet, asking(str(number), cache_prefix="tree")))

    play(body, servers, slack=4)
    assert [len(server.requests) for server in servers] == [8, 4]


def test_no_replica_idles_while_calls_wait_for_another() -> None:
    servers = [Server(), Server()]

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in range(4):
                tasks.create_task(answer(fleet, asking(str(number), cache_prefix="tree")))
            await settle()
            assert [server.running for server in servers] == [2, 2]

    play(body, servers, in_flight=2)


def test_a_free_place_goes_to_a_call_that_belongs_there() -> None:
    """Both are full, and the oak's next call is first in line: it only takes what nobody wants."""
    servers = [Server(prefill_s=5.0), Server(prefill_s=1.0)]

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        async with asyncio.TaskGroup() as tasks:
            for priority, tree in ((9, "oak"), (8, "elm"), (7, "oak"), (6, "elm"), (5, "elm")):
                request = asking(f"{tree} {priority}", cache_prefix=tree, priority=priority)
                tasks.create_task(answer(fleet, request))

    play(body, servers, in_flight=1)
    seen = [[request.messages[0].content for request in server.requests] for server in servers]
    assert seen == [["oak 9"], ["elm 8", "elm 6", "elm 5", "oak 7"]]


class TestWarming:
    def warmed(self, *texts: str, busy: int = 0, **options: Any) -> tuple[Server, FleetStats]:
        server = Server()

        async def body(fleet: Fleet, clock: FakeClock) -> FleetStats:
            tasks = [asyncio.create_task(answer(fleet, asking("x"))) for _ in range(busy)]
            await settle()
            for text in texts:
                await fleet.warm(asking(text, 99, logprobs=True, priority=3))
            if tasks:
                await asyncio.wait(tasks)
            return fleet.stats()

        return server, play(body, [server], **options)

    def test_it_computes_the_prompt_and_no_answer(self) -> None:
        server, stats = self.warmed(LONG)
        [request] = server.requests
        assert request.sampling == Sampling(max_tokens=1, temperature=0)
        assert not request.logprobs
        assert request.priority < -3_000_000
        assert stats.warmed == 1

    def test_it_does_nothing_where_the_prompt_is_cached_or_short(self) -> None:
        assert len(self.warmed(LONG, LONG, LONG[:1900], "short")[0].requests) == 1
        assert not self.warmed(LONG, warm_prefix=False)[0].requests

    def test_it_is_dropped_under_load(self) -> None:
        assert self.warmed(LONG, busy=1, in_flight=4)[1].warmed == 1
        assert self.warmed(LONG, busy=2, in_flight=4)[1].warmed == 0
        assert self.warmed(LONG, busy=9, in_flight=4)[1].warmed == 0

    def test_the_real_call_waits_for_it_and_goes_where_it_was(self) -> None:
        servers = [Server(), Server()]

        async def body(fleet: Fleet, clock: FakeClock) -> int:
            warming = asyncio.create_task(fleet.warm(asking(LONG)))
            await settle()
            await answer(fleet, asking(LONG + "now"))
            await warming
            return fleet.stats().held_for_prefix

        assert play(body, servers) == 1
        assert [len(server.requests) for server in servers] == [2, 0]

    @pytest.mark.parametrize(
        "fate", [Fate(refuse=True), Fate(overloaded_s=1), Fate(break_after_tokens=0)]
    )
    def test_a_replica_that_fails_is_no_error(self, fate: Fate) -> None:
        server = Server(lambda _: fate)

        async def body(fleet: Fleet, clock: FakeClock) -> int:
            await fleet.warm(asking(LONG))
            return fleet.stats().warmed

        assert play(body, [server]) == 0

    def test_its_time_is_bounded(self) -> None:
        async def body(fleet: Fleet, clock: FakeClock) -> float:
            await fleet.warm(asking(LONG, timeout_s=2.0))
            return clock.now()

        assert play(body, [Server(prefill_s=50)]) == pytest.approx(2.0)

    def test_a_wrong_request_is_one(self) -> None:
        def refuse(_: ModelRequest) -> Fate:
            raise ModelRequestError("too long")

        async def body(fleet: Fleet, clock: FakeClock) -> None:
            await fleet.warm(asking(LONG))

        with pytest.raises(ModelRequestError, match="too long"):
            play(body, [Server(refuse)])
