"""The simulator against a slow one, and what it must conserve."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from tests.serving.plan.oracle import Slow
from weft.serving.plan.latency import ForwardBatch
from weft.serving.plan.simulation import SimulatedReplica, serve
from weft.serving.plan.traffic import Traffic, TrafficRequest


@dataclass(frozen=True)
class Toy:
    """Durations that depend on all that a batch is."""

    step: float = 1.0
    context: float = 0.01

    def seconds(self, batch: ForwardBatch) -> float:
        return (
            self.step
            + 0.1 * batch.prefill_tokens
            + 0.001 * batch.prefill_pairs
            + max(0.05 * batch.decodes, 0.3)
            + self.context * batch.decode_context
            + 0.02 * batch.sampled
        )


def replica(
    durations: Toy | None = None, kv: int = 10_000, block: int = 4, slots: int = 8, budget: int = 64
) -> SimulatedReplica:
    return SimulatedReplica(
        durations or Toy(), kv_tokens=kv, block_tokens=block, slots=slots, budget=budget
    )


requests = st.lists(
    st.tuples(st.floats(0, 200), st.integers(1, 60), st.integers(1, 40)), min_size=1, max_size=25
).map(
    lambda drawn: tuple(
        TrafficRequest(arrival, prompt, output) for arrival, prompt, output in sorted(drawn)
    )
)


@examples(300)
@given(
    requests,
    st.integers(116, 400),  # 60 + 40 tokens and a block: what must fit an empty cache
    st.sampled_from([1, 4, 16]),
    st.integers(1, 8),
    st.integers(8, 64),
    st.sampled_from([0.0, 0.01]),
)
def test_it_equals_the_slow_simulation(
    asked: tuple[TrafficRequest, ...], kv: int, block: int, slots: int, budget: int, context: float
) -> None:
    durations = Toy(context=context)
    engine = replica(durations, kv, block, slots, budget)
    serve(Traffic("test", asked), [engine])
    slow = Slow(durations, kv_tokens=kv, block=block, slots=slots, budget=budget)
    courses = slow.run(asked)
    fast = {id(job.request): job for job in engine.done}
    assert len(fast) == len(asked)
    for expected in courses:
        job = fast[id(expected.request)]
        assert job.first_s == pytest.approx(expected.first_s)
        assert job.finished_s == pytest.approx(expected.finished_s)
    assert engine.preemptions == slow.preemptions


@examples(200)
@given(requests, st.integers(120, 300), st.integers(1, 4), st.integers(0, 60))
def test_every_token_is_written_once_and_the_cache_never_overflows(
    asked: tuple[TrafficRequest, ...], kv: int, dp: int, shared: int
) -> None:
    asked = tuple(
        TrafficRequest(
            r.arrival_s, r.prompt_tokens, r.output_tokens, "p", min(shared, r.prompt_tokens)
        )
        for r in asked
    )
    engines = [replica(kv=kv) for _ in range(dp)]
    serve(Traffic("test", asked), engines)
    jobs = [job for engine in engines for job in engine.done]
    assert sorted(id(job.request) for job in jobs) == sorted(map(id, asked))
    for job in jobs:
        assert job.produced_tokens == job.request.output_tokens
        assert job.request.arrival_s < job.first_s <= job.finished_s
    for engine in engines:
        assert engine.produced_tokens == sum(job.produced_tokens for job in engine.done)
        assert engine.cache.peak_tokens <= kv
        assert engine.cache.used_tokens == 0
        assert engine.outstanding == 0


def test_prompts_are_computed_once_unless_preempted() -> None:
    asked = tuple(TrafficRequest(0.0, 50, 30) for _ in range(6))
    roomy, tight = replica(), replica(kv=150)
    for engine in (roomy, tight):
        serve(Traffic("test", asked), [engine])
    assert roomy.prefilled_tokens == 6 * 50
    assert roomy.preemptions == 0
    assert tight.preemptions > 0
    assert tight.prefilled_tokens > 6 * 50
    assert tight.now_s > roomy.now_s


def test_long_stretches_take_few_evaluations() -> None:
    calls = 0

    class Counting(Toy):
        def seconds(self, batch: ForwardBatch) -> float:
            nonlocal calls
            calls += 1
            return super().seconds(batch)

    engine = replica(Counting())
    serve(Traffic("test", (TrafficRequest(0.0, 10, 5_000),)), [engine])
    assert engine.iterations == 5_000
    assert calls < 10


def test_a_known_prefix_is_not_computed_again_and_held_once() -> None:
    first, second = TrafficRequest(0.0, 40, 5, "p", 32), TrafficRequest(1e6, 40, 5, "p", 32)
    engine = replica()
    serve(Traffic("test", (first, second)), [engine])
    assert engine.prefilled_tokens == 40 + 8
    together = replica()
    serve(
        Traffic("test", (first, *(TrafficRequest(30.0, 40, 500, "p", 32) for _ in range(4)))),
        [together],
    )
    assert together.cache.peak_tokens < 32 + 4 * (8 + 500 + 4)


def test_a_prefix_that_fills_the_prompt_leaves_one_token_to_compute() -> None:
    engine = replica()
    serve(
        Traffic("test", (TrafficRequest(0.0, 32, 2, "p", 32), TrafficRequest(1e6, 32, 2, "p", 32))),
        [engine],
    )
    assert engine.prefilled_tokens == 32 + 4  # the last block again: its last token gives the first


def test_requests_go_to_the_least_loaded_replica() -> None:
    engines = [replica(slots=1), replica(slots=1)]
    serve(Traffic("test", tuple(TrafficRequest(0.0, 10, 10) for _ in range(4))), engines)
    assert [len(engine.done) for engine in engines] == [2, 2]
    one = replica(slots=1)
    serve(Traffic("test", tuple(TrafficRequest(0.0, 10, 10) for _ in range(4))), [one])
    assert one.now_s == pytest.approx(2 * engines[0].now_s)
