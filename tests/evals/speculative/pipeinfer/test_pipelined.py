"""Runs in a pipeline: the text of plain decoding, whatever the drafts and whatever the times."""

from __future__ import annotations

import random
import threading
from contextlib import closing

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evals.speculative.pipeinfer.head import Head
from evals.speculative.pipeinfer.pipeline import Pipeline, Threads
from evals.speculative.pipeinfer.pipelined import PipelinedDecoding, PipelineOptions
from evals.speculative.pipeinfer.run import Run
from evals.speculative.pipeinfer.simulated import Costed, Simulated, VirtualClock
from evals.speculative.pipeinfer.timeline import Timeline, cancelled_tokens
from tests.decoding.speculative.drafters.model.decoding import LIMITS, PROMPT, plain
from tests.decoding.speculative.drafters.model.paper import Paper
from tests.decoding.speculative.toy import WORDS
from tests.evals.speculative.pipeinfer.stage import PaperStage, stages
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.decoding.speculative.drafters.model.continuous import ConfidenceCutoff
from weft.decoding.speculative.drafters.model.draft_cache import DraftCache
from weft.decoding.speculative.loop import DecodeLimits

shapings = st.sampled_from(
    [SamplingParams(0.0), SamplingParams(0.8, top_p=0.9), SamplingParams(1.3, top_k=3)]
)
EAGER = PipelineOptions(batch=3, cutoff=ConfidenceCutoff(0.0, 0.1, 0.0), split=0.15)


def simulated(
    noise: float,
    shaping: SamplingParams,
    seed: int,
    *,
    limits: DecodeLimits = LIMITS,
    count: int = 3,
    options: PipelineOptions = EAGER,
    draft_s: float = 0.1,
    chance: random.Random | None = None,
    lanes: int = 3,
) -> tuple[list[int], PipelinedDecoding, Simulated, Timeline]:
    """On a virtual clock; with `chance` every pass takes a random time."""
    clock = VirtualClock()
    timeline = Timeline(clock.now)

    def seconds(number: int, tokens: int) -> float:
        return chance.uniform(0.01, 1.0) if chance else 0.3 + 0.01 * tokens

    pipeline = Simulated(stages(count), clock, seconds, timeline)
    draft = Costed(
        Paper(noise), clock, lambda tokens: chance.uniform(0.01, 1.0) if chance else draft_s
    )
    decoding = decoder(
        pipeline, DraftCache(draft, WORDS, timeline), shaping, seed, limits, options, lanes
    )
    with closing(decoding):
        text = [token for tokens in decoding for token in tokens]
    return text, decoding, pipeline, timeline


def decoder(
    pipeline: Pipeline,
    cache: DraftCache,
    shaping: SamplingParams,
    seed: int,
    limits: DecodeLimits,
    options: PipelineOptions,
    lanes: int = 3,
) -> PipelinedDecoding:
    head = Head(PROMPT, shaping, CounterRng(seed), limits, lanes)
    return PipelinedDecoding(head, pipeline, cache, options)


@given(
    shapings,
    st.integers(0, 999),
    st.sampled_from([0.0, 0.7, 1.5, 5.0]),
    st.integers(1, 4),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.15, 0.8]),
    st.integers(1, 4),
)
def test_any_schedule_gives_the_text_of_plain_decoding(
    shaping: SamplingParams,
    seed: int,
    noise: float,
    count: int,
    batch: int,
    split: float,
    lanes: int,
) -> None:
    options = PipelineOptions(batch, ConfidenceCutoff(0.0, 0.12, 0.01), split)
    chance = random.Random(seed)
    text, decoding, pipeline, _ = simulated(
        noise, shaping, seed, count=count, options=options, chance=chance, lanes=lanes
    )
    assert text == plain(shaping, seed)
    counters = decoding.head.counters
    assert counters.tokens == len(text)
    assert all(run.cancelled for run in decoding.head.flight)
    assert pipeline.skipped <= count * decoding.head.cancelled.runs


@pytest.mark.parametrize("noise", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("count", [1, 3])
def test_threads_write_the_same(noise: float, count: int) -> None:
    for shaping in (SamplingParams(0.0), SamplingParams(0.8, top_p=0.9)):
        for seed in range(5):
            pipeline = Threads(stages(count))
            cache = DraftCache(Paper(noise), WORDS)
            with closing(decoder(pipeline, cache, shaping, seed, LIMITS, EAGER)) as decoding:
                text = [token for tokens in decoding for token in tokens]
            assert text == plain(shaping, seed)


def test_a_draft_that_is_right_fills_the_pipeline() -> None:
    """Three stages of 0.3 s: alone a token takes 0.9 s and more; with true drafts they overlap."""
    limits = DecodeLimits(40)
    text, decoding, _, timeline = simulated(0.0, SamplingParams(0.0), 0, limits=limits, lanes=1)
    assert text == plain(SamplingParams(0.0), 0, limits)
    assert decoding.head.cancelled.runs == len(
        [run for run in decoding.head.flight if run.kind != "prompt"]
    ), "only what was on its way at the end"
    plain_text, _, _, alone = simulated(
        0.0,
        SamplingParams(0.0),
        0,
        limits=limits,
        options=PipelineOptions(cutoff=ConfidenceCutoff(1.0)),
    )
    assert plain_text == text
    assert timeline.intervals[-1].end_s < alone.intervals[-1].end_s / 3


def test_without_drafts_every_run_is_the_newest_token() -> None:
    never = PipelineOptions(cutoff=ConfidenceCutoff(1.0))
    text, decoding, pipeline, timeline = simulated(0.0, SamplingParams(0.0), 0, options=never)
    assert decoding.head.counters.forwards == len(text)
    assert decoding.head.counters.drafted == 0
    assert pipeline.skipped == 0
    assert {kept.tokens for kept in timeline.intervals[3:]} == {1}


def test_a_wrong_draft_is_called_off_early() -> None:
    """What is on its way behind a rejected token is left out by the stages that have not begun it.

    And the newest token is sent at once: a pass never waits for more than what a stage had begun.
    """
    _, decoding, pipeline, timeline = simulated(50.0, SamplingParams(0.0), 0, draft_s=0.02, lanes=1)
    head = decoding.head
    assert head.cancelled.runs > 10
    assert pipeline.skipped > 10
    assert cancelled_tokens(timeline.intervals) > 10
    assert head.cancelled.tokens >= head.cancelled.runs


def test_an_alternative_that_comes_true_takes_over_the_lane() -> None:
    """The second choice of a draft is read in a lane of its own, and goes on from there."""
    took = 0
    for seed in range(30):
        text, decoding, _, _ = simulated(1.0, SamplingParams(0.9), seed, options=EAGER)
        assert text == plain(SamplingParams(0.9), seed)
        took += decoding.head._lane != 0
    assert took > 0


def test_the_cut_off_keeps_the_queue_short() -> None:
    """Recovery 0.4: no more than three drafted runs are ever on their way."""
    most = 0
    clock = VirtualClock()
    options = PipelineOptions(batch=1, cutoff=ConfidenceCutoff(0.0, 0.4, 0.0), split=1.0)
    draft = DraftCache(Costed(Paper(0.0), clock, lambda tokens: 0.001), WORDS)
    pipeline = Simulated(stages(3), clock, lambda number, tokens: 1.0)
    with closing(
        decoder(pipeline, draft, SamplingParams(0.0), 0, DecodeLimits(20), options)
    ) as decoding:
        for _ in decoding:
            most = max(most, decoding.head.speculative)
    assert 0 < most <= 3


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_stage_that_fails_is_heard(number: int) -> None:
    failing = [PaperStage(stage, last=stage == 2) for stage in range(3)]
    failing[number].fails_at = 2
    pipeline = Threads(failing)
    decoding = decoder(pipeline, DraftCache(Paper(), WORDS), SamplingParams(0.0), 0, LIMITS, EAGER)
    with closing(decoding), pytest.raises(RuntimeError, match=f"stage {number} fell over"):
        list(decoding)
    assert not [thread for thread in pipeline._threads if thread.is_alive()]


def test_a_thread_leaves_out_what_is_called_off_before_it_begins() -> None:
    class Slow(PaperStage):
        def __init__(self) -> None:
            super().__init__(0, last=False)
            self.inside, self.let_on = threading.Event(), threading.Event()

        def read(self, run: Run, entering: torch.Tensor | None) -> torch.Tensor:
            self.inside.set()
            assert self.let_on.wait(60)
            return super().read(run, entering)

    slow, last = Slow(), PaperStage(1, last=True)
    pipeline = Threads([slow, last])
    runs = [Run(number, "newest", 0, 0, 0, (1,), 0, (1,)) for number in range(3)]
    with closing(pipeline):
        for run in runs:
            pipeline.send(run)
        assert slow.inside.wait(60)
        assert pipeline.poll() is None
        runs[1].cancelled = True
        slow.let_on.set()
        results = [pipeline.wait() for _ in runs]
    assert [result.run for result in results] == runs, "it still passes, in its turn"
    assert [len(result.logits) for result in results] == [1, 0, 1]
    assert slow.read_runs == last.read_runs == [0, 2]
    assert pipeline.skipped == 2


def test_nothing_is_sent_for_a_text_of_nothing() -> None:
    text, decoding, _, timeline = simulated(0.0, SamplingParams(0.0), 0, limits=DecodeLimits(0))
    assert (text, decoding.head.flight, timeline.intervals) == ([], (), ())


def test_runs_pass_every_stage_in_their_order() -> None:
    made = stages(3)
    cache = DraftCache(Paper(1.0), WORDS)
    with closing(decoder(Threads(made), cache, SamplingParams(0.8), 1, LIMITS, EAGER)) as decoding:
        list(decoding)
    for stage in made:
        assert stage.read_runs == sorted(stage.read_runs)
        assert set(stage.read_runs) <= set(made[0].read_runs)
