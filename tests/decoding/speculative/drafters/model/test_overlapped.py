"""Drafts beside the target, in a thread and without one: the same text, rounds and counts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.speculative.pipeinfer.simulated import VirtualClock
from evals.speculative.pipeinfer.timeline import Timeline, cancelled_tokens
from tests.decoding.speculative.drafters.model.decoding import (
    LIMITS,
    PROMPT,
    Rows,
    decoded,
    plain,
    started,
)
from tests.decoding.speculative.drafters.model.paper import Paper
from tests.decoding.speculative.toy import WORDS
from weft.decoding.sampling import SamplingParams
from weft.decoding.speculative.draft import DraftProposal, DraftTree
from weft.decoding.speculative.drafter import propose_all
from weft.decoding.speculative.drafters.model.continuous import ConfidenceCutoff, ContinuousPacing
from weft.decoding.speculative.drafters.model.draft_cache import DraftCache
from weft.decoding.speculative.drafters.model.draft_model import DraftedToken
from weft.decoding.speculative.drafters.model.llmcad import CascadeMethod
from weft.decoding.speculative.drafters.model.pearl import PearlPacing
from weft.decoding.speculative.drafters.model.pipelined import (
    AdaptiveGamma,
    DraftPacing,
    DraftWorker,
    InlineWorker,
    PipelinedDrafter,
    PipelinedMethod,
    ThreadWorker,
)
from weft.decoding.speculative.loop import DecodeLimits

shapings = st.sampled_from(
    [SamplingParams(0.0), SamplingParams(0.8, top_p=0.9), SamplingParams(1.3, top_k=3)]
)
noises = st.sampled_from([0.0, 1.0, 4.0])
CLOCK = VirtualClock()


def fixed(length: int) -> AdaptiveGamma:
    return AdaptiveGamma(length, length, CLOCK.now, adaptive=False)


def pearl(
    paper: Paper, gamma: int, worker: DraftWorker, pacing: DraftPacing | None = None
) -> PipelinedMethod:
    cache = DraftCache(paper, WORDS, Timeline(CLOCK.now))
    pacing = pacing or PearlPacing()
    return PipelinedMethod("pearl", cache, worker, fixed(gamma), pacing, CLOCK.now, max(gamma, 4))


def cascade(paper: Paper, gamma: int, worker: DraftWorker) -> PipelinedMethod:
    cache = DraftCache(paper, WORDS, Timeline(CLOCK.now))
    return CascadeMethod("llmcad", cache, worker, fixed(gamma), CLOCK.now, 6, width=2)


def continuous(paper: Paper, gamma: int, worker: DraftWorker) -> PipelinedMethod:
    return pearl(paper, gamma, worker, ContinuousPacing(ConfidenceCutoff(), 2, gamma))


Maker = Callable[[Paper, int, DraftWorker], PipelinedMethod]
KINDS: list[Maker] = [pearl, cascade, continuous]


def watched(own: PipelinedMethod) -> list[object]:
    """What is counted and offered at the end of every round, when the draft model is at rest."""
    seen: list[object] = []
    offer, timeline = own.offer, own.cache.timeline
    assert timeline is not None

    def offered(asks: Sequence[tuple[PipelinedDrafter, int]]) -> Sequence[DraftTree]:
        trees = offer(asks)
        seen.append((trees, own.forwards, own.thrown_away, cancelled_tokens(timeline.intervals)))
        return trees

    own.offer = offered  # type: ignore[method-assign]
    return seen


@pytest.mark.parametrize("kind", KINDS)
@given(shapings, st.integers(0, 99), st.integers(1, 6), noises)
def test_the_text_is_the_targets(
    kind: Maker, shaping: SamplingParams, seed: int, gamma: int, noise: float
) -> None:
    own = kind(Paper(noise), gamma, InlineWorker())
    text, counters = decoded(own, shaping, seed)
    assert text == plain(shaping, seed)
    own.close()
    # every token of the draft model was read by the target, stood for its own, or was thrown away
    assert own.thrown_away >= 0
    assert counters.drafted >= counters.accepted


@pytest.mark.parametrize("kind", [pearl, cascade])
@pytest.mark.parametrize("noise", [0.0, 1.5])
def test_a_thread_changes_nothing_but_the_time(kind: Maker, noise: float) -> None:
    for shaping in (SamplingParams(0.0), SamplingParams(0.8, top_p=0.9)):
        for seed in range(4):
            found = []
            for worker in (InlineWorker(), ThreadWorker("test")):
                own = kind(Paper(noise), 3, worker)
                rounds = watched(own)
                text, counters = decoded(own, shaping, seed, DecodeLimits(24))
                assert text == plain(shaping, seed, DecodeLimits(24))
                own.close()
                found.append((rounds, counters))
            assert found[0] == found[1]
            assert len(found[0][0]) > 1


@pytest.mark.parametrize("kind", KINDS)
@given(rows=st.integers(1, 4), noise=noises, shaping=shapings)
def test_rows_share_the_rounds(
    kind: Maker, rows: int, noise: float, shaping: SamplingParams
) -> None:
    prompts = [[1 + row % 3, *PROMPT[:row]] for row in range(rows)]
    paper = Paper(noise)
    own = kind(paper, 3, InlineWorker())
    texts = Rows(own, prompts, shaping).run(LIMITS)
    assert texts == [plain(shaping, row, prompt=p) for row, p in enumerate(prompts)]
    assert max(len(spans) for spans in paper.passes) == rows


def test_rows_in_threads() -> None:
    prompts = [[1], [2, 3], [3, 1, 2]]
    for kind in KINDS:
        own = kind(Paper(1.0), 3, ThreadWorker("test"))
        texts = Rows(own, prompts, SamplingParams(0.8)).run(DecodeLimits(30))
        own.close()
        assert texts == [
            plain(SamplingParams(0.8), r, DecodeLimits(30), p) for r, p in enumerate(prompts)
        ]


def test_pearls_modes() -> None:
    """The first pass reads the prompt's last token alone; then a round is gamma tokens long."""
    own, limits = pearl(Paper(0.0), 4, InlineWorker()), DecodeLimits(21)
    decoding = started(own, SamplingParams(0.0), 0, limits)
    steps = [len(step) for step in decoding]
    assert steps == [1, 4, 4, 4, 4, 4], "pre-verify commits one, post-verify gamma"
    own = pearl(Paper(50.0), 4, InlineWorker())
    _, counters = decoded(own, SamplingParams(0.0), 0, limits)
    assert counters.drafted < counters.forwards * 3, "after a miss nothing is proposed"


def test_what_was_drafted_for_nothing_is_counted() -> None:
    """A draft that is never right: all of every round is thrown away, and none of it was read."""

    class Wrong(Paper):
        def logits(self, text: object) -> object:  # type: ignore[override]
            return -super().logits(text)  # type: ignore[arg-type]

    own, limits = pearl(Wrong(), 3, InlineWorker()), DecodeLimits(10)
    _, counters = decoded(own, SamplingParams(0.0), 0, limits)
    own.close()
    assert counters.drafted == 0
    assert counters.forwards == 10
    assert own.forwards == own.thrown_away == 30
    timeline = own.cache.timeline
    assert timeline is not None
    assert {kept.what for kept in timeline.intervals} == {"cancelled"}


def test_gamma_is_the_ratio_of_times() -> None:
    clock = VirtualClock()
    gamma = AdaptiveGamma(4, 8, clock.now)
    assert gamma.length == 4, "nothing measured yet"
    gamma.target_begins()
    clock.pass_by(0.30)
    gamma.target_ended()
    gamma.drafted(3, 0.15)
    assert gamma.length == 6
    gamma.drafted(1, 10.0)
    assert gamma.length == 1, "at least one"
    for _ in range(60):
        gamma.drafted(10, 0.01)
    assert gamma.length == 8, "at most the longest"
    gamma.target_begins()
    gamma.interrupted()
    clock.pass_by(1000.0)
    gamma.target_ended()
    assert gamma.length == 8, "a pause is no pass"
    assert fixed(3).length == 3


def test_the_cut_off() -> None:
    cutoff = ConfidenceCutoff(0.1, 0.4, 0.05)
    assert [round(cutoff(batches, 0), 3) for batches in range(4)] == [0.1, 0.5, 0.9, 1.3]
    assert cutoff(0, 1) == pytest.approx(0.05)
    assert cutoff(0, 9) == 0.0
    never = ContinuousPacing(ConfidenceCutoff(), 4, 16)
    assert not never.goes_on(12, [], 0), "too far ahead"


class Waiting(Paper):
    """Stops within its second pass until it is let on."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self.inside = threading.Event()
        self.let_on = threading.Event()

    def forward(self, spans):  # type: ignore[no-untyped-def]
        if len(self.passes) == 1:
            self.inside.set()
            assert self.let_on.wait(60)
        return super().forward(spans)


def test_an_end_within_a_round_stops_the_draft_and_frees_the_slot_after_it() -> None:
    paper = Waiting()
    own = pearl(paper, 6, ThreadWorker("test"))
    drafter = own.begin()
    drafter.extend(PROMPT)
    assert own.propose([(drafter, 6)]) == [DraftProposal(source="pearl")]
    assert paper.inside.wait(60)
    own.end(drafter)
    other = own.begin()
    assert other.line.slot != drafter.line.slot, "its slot is still being read into"  # type: ignore[attr-defined]
    paper.let_on.set()
    own.close()
    assert len(paper.passes) == 2, "no pass after the end"


def test_closing_stops_the_draft() -> None:
    paper = Waiting()
    own = pearl(paper, 6, ThreadWorker("test"))
    drafter = own.begin()
    drafter.extend(PROMPT)
    own.propose([(drafter, 6)])
    assert paper.inside.wait(60)
    closing = threading.Thread(target=own.close)
    closing.start()
    while not own._closing:
        pass
    paper.let_on.set()
    closing.join(60)
    assert not closing.is_alive()
    assert len(paper.passes) == 2
    assert not [t for t in threading.enumerate() if t.name.startswith("test")]
    [failed] = propose_all(own, [(drafter, 6)])
    assert isinstance(failed, RuntimeError), "no draft after the end"


def test_a_miss_ends_a_draft_without_end() -> None:
    paper = Waiting()
    own = continuous(paper, 16, ThreadWorker("test"))
    drafter = own.begin()
    drafter.extend(PROMPT)
    own.propose([(drafter, 16)])
    assert paper.inside.wait(60)
    drafter.extend([(plain(SamplingParams(0.0), 0)[0] + 1) % WORDS])
    paper.let_on.set()
    assert own._running is not None
    own._running.result(60)
    assert len(paper.passes) == 2, "the pass that was under way is the last"
    own.propose([(drafter, 16)])
    own.close()
    assert own.thrown_away == 2


@pytest.mark.parametrize("worker", [InlineWorker, lambda: ThreadWorker("test")])
@pytest.mark.parametrize("kind", KINDS)
def test_a_failure_beside_the_target_is_told_at_the_next_step(
    kind: Maker, worker: Callable[[], DraftWorker]
) -> None:
    paper = Paper(0.0)
    paper.fails_at = 5
    own = kind(paper, 3, worker())
    decoding = started(own, SamplingParams(0.0), 0, DecodeLimits(30))
    text, failed = list[int](), False
    for step in decoding:
        text += step
        assert (decoding.speculation.fallback is not None) == failed
        if own._running is not None:  # how many passes a round has is the scheduler's choice
            failed = own._running.exception(60) is not None
    own.close()
    assert failed
    assert len(paper.passes) == paper.fails_at
    assert text == plain(SamplingParams(0.0), 0, DecodeLimits(30))
    assert decoding.speculation.fallback is not None
    assert "torn" in decoding.speculation.fallback.reason


def test_work_without_a_thread_tells_its_errors_when_asked() -> None:
    def fails() -> None:
        raise ValueError("no")

    future: Future[None] = InlineWorker().start(fails)
    with pytest.raises(ValueError, match="no"):
        future.result()


@pytest.mark.parametrize(
    ("written", "ended", "accepted", "lost", "thrown_away", "ahead"),
    [
        ([1, 9], False, 1, 4, 2, 0),  # 2 and 3 were read in vain, 4 and 5 never
        ([1, 2, 3, 4], False, 3, 0, 0, 1),
        ([1, 2, 3, 9], False, 3, 2, 2, 0),
        ([9], False, 0, 5, 2, 0),
        ([1, 2, 3, 4, 5], False, 3, 0, 0, 0),
        ([1, 2, 3, 4, 5, 6], False, 3, 0, 0, 0),
        ([1, 2], True, 2, 3, 2, 0),
        ([], False, 0, 0, 0, 5),
    ],
)
def test_what_came_of_an_offer(
    written: list[int], ended: bool, accepted: int, lost: int, thrown_away: int, ahead: int
) -> None:
    """Five tokens are expected, three of them are read."""
    drafter = pearl(Paper(), 3, InlineWorker()).begin()
    assert isinstance(drafter, PipelinedDrafter)
    drafter.ahead, drafter.offered = [DraftedToken(token, 0.5) for token in (1, 2, 3, 4, 5)], 3
    drafter.extend(written)
    drafter.ended = ended
    settled = drafter.settle()
    found = (settled.accepted, len(settled.lost), settled.thrown_away, len(drafter.ahead))
    assert found == (accepted, lost, thrown_away, ahead)
    assert drafter.misses == (written[-1:] == [9])
    assert len(drafter.line) == len(written)
