"""Whatever breaks, every call gets exactly the tokens of an undisturbed run."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from hypothesis import given
from hypothesis import strategies as st

from tests.serving.fleet.server import END, LETTERS, Fate, Server
from weft.core.ports import (
    ModelEvent,
    ModelRequest,
    Prefilled,
    Program,
    Sampling,
    TextDelta,
)
from weft.core.values import Completion, Message
from weft.serving.fleet import Fleet, FleetOptions
from weft.testing import FakeClock

fates = st.builds(
    Fate,
    break_after_tokens=st.none() | st.integers(0, 60),
    overloaded_s=st.none() | st.none() | st.floats(0, 3),
    refuse=st.sampled_from([False, False, False, True]),
    merge=st.integers(1, 4),
    break_at_stop=st.booleans(),
)
requests = st.builds(
    lambda text, program, remaining, limit, stop, stop_ids, logprobs: ModelRequest(
        (Message("user", text),),
        sampling=Sampling(max_tokens=limit, temperature=0, stop=stop, stop_token_ids=stop_ids),
        logprobs=logprobs,
        program=Program(program, 1, remaining),
    ),
    st.tuples(st.sampled_from(["", "s" * 200, "t" * 300]), st.text("abcdefgh", max_size=12)).map(
        "".join
    ),
    st.sampled_from("pqr"),
    st.integers(1, 9),
    st.none() | st.integers(1, 80),
    st.sampled_from([(), (), ("##",), ("ab", "ok the"), ("\n",)]),
    st.sampled_from([(), (), (LETTERS[3],), (LETTERS[-1], END)]),
    st.sampled_from([False, False, True]),
)


async def events_of(client: Server | Fleet, request: ModelRequest) -> list[ModelEvent]:
    async with aclosing(client.generate(request)) as stream:
        return [event async for event in stream]


def undisturbed(request: ModelRequest) -> Completion:
    last = FakeClock().run(events_of(Server(), request))[-1]
    assert isinstance(last, Completion)
    return last


def check(right: Completion, events: list[ModelEvent]) -> None:
    *deltas, last = events
    assert isinstance(last, Completion)
    assert sum(isinstance(event, Prefilled) for event in deltas) == 1
    texts = [event for event in deltas if isinstance(event, TextDelta)]
    assert "".join(delta.text for delta in texts) == right.text
    assert tuple(i for delta in texts for i in delta.token_ids) == right.token_ids
    assert tuple(p for delta in texts for p in delta.logprobs) == right.logprobs
    assert (last.text, last.token_ids) == (right.text, right.token_ids)
    assert (last.finish_reason, last.logprobs) == (right.finish_reason, right.logprobs)
    assert last.stop == right.stop
    assert last.usage.prompt_tokens == right.usage.prompt_tokens
    assert last.usage.completion_tokens == right.usage.completion_tokens


@given(
    st.lists(requests, min_size=1, max_size=12),
    st.lists(fates, max_size=25),
    st.integers(1, 3),
    st.integers(1, 4),
    st.none() | st.integers(1, 3),
)
def test_nothing_is_lost_and_nothing_comes_twice(
    asked: list[ModelRequest],
    fated: list[Fate],
    replicas: int,
    in_flight: int,
    bears: int | None,
) -> None:
    """Fates are dealt to requests as they come, to whichever replica; then all is well."""
    right = [undisturbed(request) for request in asked]
    clock = FakeClock()
    deck = iter(fated)
    servers = [Server(lambda _: next(deck, Fate()), max_running=bears) for _ in range(replicas)]
    options = FleetOptions(
        in_flight=in_flight, failover=60, retries=60, outage_s=1e6, min_shared_chars=16
    )

    async def main() -> None:
        fleet = Fleet(servers, options, clock=clock)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(events_of(fleet, request)) for request in asked]
        for answer, task in zip(right, tasks, strict=True):
            check(answer, task.result())
        assert fleet.stats().cancelled == 0
        await fleet.aclose()
        assert len(asyncio.all_tasks()) == 1

    clock.run(main())
    assert all(server.running == 0 for server in servers)
    assert all(server.most_running <= in_flight for server in servers)


@given(
    st.lists(requests, min_size=1, max_size=16),
    st.lists(st.tuples(st.floats(0, 3), st.integers(0, 1), st.floats(0, 5)), max_size=6),
    st.lists(st.tuples(st.integers(0, 15), st.floats(0, 3)), max_size=6),
)
def test_servers_that_die_and_come_back_while_callers_leave(
    asked: list[ModelRequest],
    deaths: list[tuple[float, int, float]],
    leavers: list[tuple[int, float]],
) -> None:
    right = [undisturbed(request) for request in asked]
    clock = FakeClock()
    servers = [Server(), Server()]
    options = FleetOptions(in_flight=3, failover=60, outage_s=1e6)

    async def die(after_s: float, index: int, for_s: float) -> None:
        await clock.sleep(after_s)
        servers[index].kill()
        await clock.sleep(for_s)
        servers[index].down = False

    async def leave(task: asyncio.Task[list[ModelEvent]], after_s: float) -> None:
        await clock.sleep(after_s)
        task.cancel()

    async def main() -> None:
        fleet = Fleet(servers, options, clock=clock)
        tasks = [asyncio.create_task(events_of(fleet, request)) for request in asked]
        async with asyncio.TaskGroup() as group:
            for death in deaths:
                group.create_task(die(*death))
            for index, after_s in leavers:
                group.create_task(leave(tasks[index % len(tasks)], after_s))
            await asyncio.wait(tasks)
        for answer, task in zip(right, tasks, strict=True):
            if not task.cancelled():
                check(answer, task.result())
        assert fleet.stats().cancelled == sum(task.cancelled() for task in tasks)
        await fleet.aclose()
        assert len(asyncio.all_tasks()) == 1

    clock.run(main())
    assert all(server.running == 0 for server in servers)
    assert all(server.most_running <= 3 for server in servers)
