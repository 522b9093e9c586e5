"""The fleet over two real vLLM servers: shared prefixes, cancelled samples, a killed replica."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager
from dataclasses import replace

import pytest

from tests.live_vllm import NAME, LiveVllm
from tests.profile import share
from weft.core.ports import ModelEvent, ModelRequest, Sampling, TextDelta, complete
from weft.core.values import Completion, Message
from weft.serving.fleet import Fleet, FleetOptions
from weft.serving.openai import OpenAIModel

pytestmark = [pytest.mark.vllm, pytest.mark.model]
TOPICS = ("rivers", "bread", "emoji such as 🎉 and 漢字", "the moon", "glass", "bees")
DEFAULTS = FleetOptions()
PATIENCE_S = 120.0
MOST_STEPS = 8
TRIES = 3
LONG = 400
SAMPLES = share(64)
Replicas = tuple[LiveVllm, LiveVllm]


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """Two alike, with a core each: of unequal ones the faster has answered before the slower has
    begun, and more threads add their sums in another order.
    """
    last_core = str(min(1, (os.cpu_count() or 1) - 1))
    scratch = tmp_path_factory.mktemp("replicas")
    with ExitStack() as stack:
        pair = []
        for name, core in (("0", "0"), ("1", last_core)):  # both load at the same time
            pair.append(LiveVllm(scratch / name, cores=core))
            stack.callback(pair[-1].kill)
        for server in pair:
            server.wait()
        yield pair[0], pair[1]


class CountingModel(OpenAIModel):
    """A client that counts the pieces of text that its server sent."""

    pieces = 0

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        async with aclosing(super().generate(request)) as events:
            async for event in events:
                self.pieces += isinstance(event, TextDelta)
                yield event


@asynccontextmanager
async def fleet_of(
    replicas: Sequence[LiveVllm], options: FleetOptions = DEFAULTS
) -> AsyncIterator[tuple[Fleet, list[CountingModel]]]:
    clients = [
        # it is this process that stands still when a connection takes long
        CountingModel(replica.base_url, NAME, priority=True, connect_timeout_s=PATIENCE_S)
        for replica in replicas
    ]
    fleet = Fleet(clients, options)
    try:
        yield fleet, clients
    finally:
        await fleet.aclose()


def asking(text: str, tokens: int, **sampling: object) -> ModelRequest:
    drawn = Sampling(max_tokens=tokens, **{"temperature": 0, **sampling})  # type: ignore[arg-type]
    return ModelRequest((Message("user", text),), sampling=drawn)


def story(number: int, tokens: int) -> ModelRequest:
    """One that goes on for that many."""
    request = asking("Write a long story.", tokens, temperature=1.0, seed=number)
    return replace(request, extra={"ignore_eos": True})


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.01)


def test_siblings_cost_one_prefill(replicas: Replicas) -> None:
    """A thousand shared tokens and 12 siblings, sent at once to a server that knows nothing yet."""
    prefix = "".join(f"Fact {number}: the answer to it is {number * 7}.\n" for number in range(75))

    async def main() -> tuple[int, int, int]:
        async with fleet_of(replicas, FleetOptions(hold_s=PATIENCE_S)) as (fleet, clients):
            before = [await client.metrics() for client in clients]
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(complete(fleet, asking(f"{prefix}What is {number}?", 4)))
                    for number in range(12)
                ]
            after = [await client.metrics() for client in clients]
            pairs = list(zip(after, before, strict=True))
            looked_up = sum(a.prefix_queries - b.prefix_queries for a, b in pairs)
            found = sum(a.prefix_hits - b.prefix_hits for a, b in pairs)
            assert fleet.stats().held_for_prefix == 11
            return tasks[0].result().usage.prompt_tokens, looked_up, found

    prompt, looked_up, found = asyncio.run(main())
    print(f"prompt {prompt} tokens; 12 prompts {looked_up}, of which cached {found}")
    assert prompt > 1000
    # Eleven of twelve find all but the last, unfinished block of 128 tokens.
    assert found >= 11 * (prompt - 2 * 128)


def test_cancelled_samples_free_the_server_within_a_few_steps(replicas: Replicas) -> None:
    """Every other one of many running samples is cancelled, the others end.

    Those write a token each in a step of the engine, which says how long the freeing took on a
    machine of any speed; left alone, the cancelled ones would have written for 390 steps more.
    A test that is held up just then says nothing of the fleet: it has three tries.
    """

    async def main() -> tuple[float, float, int, int, int]:
        async with asyncio.timeout(PATIENCE_S), fleet_of(replicas[:1]) as (fleet, [client]):
            before = await client.metrics()
            begun = 0

            def begins(_: object) -> None:
                nonlocal begun
                begun += 1

            tasks = [
                asyncio.create_task(complete(fleet, story(n, LONG if n % 2 else 100), begins))
                for n in range(SAMPLES)
            ]
            await until(lambda: begun > SAMPLES * 10)
            written_before = (await client.metrics()).generation_tokens
            wanted, unwanted = tasks[::2], tasks[1::2]
            for task in unwanted:
                task.cancel()
            cancelled_at = time.monotonic()
            while (freed := await client.metrics()).running > len(wanted):
                await asyncio.sleep(0.02)
            freed_s = time.monotonic() - cancelled_at
            steps = (freed.generation_tokens - written_before) / len(wanted)
            await asyncio.wait(tasks)
            cancelled = sum(task.cancelled() for task in unwanted)
            assert all(task.result().usage.completion_tokens == 100 for task in wanted)
            while (now := await client.metrics()).running:
                await asyncio.sleep(0.02)
            written = now.generation_tokens - before.generation_tokens
            assert fleet.stats().cancelled == cancelled
            wasted = written - fleet.stats().received_tokens
            return freed_s, steps, written, wasted, cancelled

    for _ in range(TRIES):
        freed_s, steps, written, wasted, cancelled = asyncio.run(main())
        in_time = cancelled == SAMPLES // 2  # before any had come to its end
        if in_time and steps < MOST_STEPS and wasted <= MOST_STEPS * cancelled:
            break
    print(f"freed after {steps:.1f} steps ({freed_s:.3f} s); wasted {wasted} of {written} tokens")
    assert in_time
    assert steps < MOST_STEPS
    assert 0 <= wasted <= MOST_STEPS * cancelled


def test_a_killed_replica_costs_no_request_and_no_token(replicas: Replicas) -> None:
    """It dies after its own first words of long answers, whether the other one has begun or not:
    what a busy machine's sockets may hold unread of them is never all of the rest.
    """
    asked = [
        asking(
            f"Tell me about {TOPICS[n % 6]}, part {n}.",
            200,
            stop=("###", "\n\n3") if n % 3 else (),
        )
        for n in range(8)
    ]

    async def answers(*, kill: bool) -> tuple[list[Completion], Fleet]:
        async with fleet_of(replicas, FleetOptions(in_flight=8)) as (fleet, clients):
            pieces: list[list[TextDelta]] = [[] for _ in asked]
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(complete(fleet, request, pieces[n].append))  # type: ignore[arg-type]
                    for n, request in enumerate(asked)
                ]
                if kill:
                    await until(lambda: clients[0].pieces >= 16)
                    replicas[0].kill()
            results = [task.result() for task in tasks]
            for result, mine in zip(results, pieces, strict=True):
                assert "".join(delta.text for delta in mine) == result.text
                assert tuple(i for delta in mine for i in delta.token_ids) == result.token_ids
            return results, fleet

    undisturbed, _ = asyncio.run(answers(kill=False))
    survived, fleet = asyncio.run(answers(kill=True))
    print(fleet.stats())
    assert fleet.stats().resumed > 0
    for right, answer in zip(undisturbed, survived, strict=True):
        assert answer.text == right.text
        assert answer.token_ids == right.token_ids
        assert answer.finish_reason == right.finish_reason
        assert answer.usage.prompt_tokens == right.usage.prompt_tokens
        assert answer.usage.completion_tokens == right.usage.completion_tokens
