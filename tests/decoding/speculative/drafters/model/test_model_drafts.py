"""A draft model beside the target: the same text, and the passes that it should take."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decoding.speculative.drafters.model.decoding import (
    LIMITS,
    PROMPT,
    Rows,
    decoded,
    plain,
    started,
)
from tests.decoding.speculative.drafters.model.paper import Paper
from tests.decoding.speculative.toy import WORDS, ToyTarget
from weft.decoding.sampling import SamplingParams
from weft.decoding.speculative.draft import DraftProposal
from weft.decoding.speculative.drafter import DraftRequest
from weft.decoding.speculative.drafters.model.draft_cache import DraftCache
from weft.decoding.speculative.drafters.model.draft_model import (
    ConfidenceStop,
    DraftedToken,
    DraftModelMethod,
    GreedyChoice,
    SampledChoice,
)
from weft.decoding.speculative.loop import DecodeLimits

shapings = st.sampled_from(
    [SamplingParams(0.0), SamplingParams(0.8, top_p=0.9), SamplingParams(1.3, top_k=3)]
)


def method(
    paper: Paper, most: int = 4, *, sample: bool = False, confidence: float = 0.0
) -> DraftModelMethod:
    cache = DraftCache(paper, WORDS)
    return DraftModelMethod("draft_model", cache, WORDS, most, sample=sample, confidence=confidence)


@given(
    shapings,
    st.integers(0, 99),
    st.integers(1, 6),
    st.sampled_from([0.0, 1.0, 4.0]),
    st.sampled_from([0.0, 0.4]),
)
def test_the_text_is_the_targets(
    shaping: SamplingParams, seed: int, most: int, noise: float, confidence: float
) -> None:
    own = method(Paper(noise), most, confidence=confidence)
    text, counters = decoded(own, shaping, seed)
    assert text == plain(shaping, seed)
    assert counters.tokens == counters.accepted + counters.forwards or text[-1] in LIMITS.end_ids
    assert own.forwards >= counters.drafted, "a pass a token, and some that found no room"


@given(shapings, st.integers(1, 5), st.sampled_from([0.0, 2.0]))
def test_rows_draft_together(shaping: SamplingParams, rows: int, noise: float) -> None:
    prompts = [[1 + row % 3, *PROMPT[:row]] for row in range(rows)]
    paper = Paper(noise)
    texts = Rows(method(paper), prompts, shaping).run(LIMITS)
    assert texts == [plain(shaping, row, prompt=p) for row, p in enumerate(prompts)]
    assert max(len(spans) for spans in paper.passes) == rows, "one pass a depth, for all rows"


def test_the_targets_own_weights_are_always_right() -> None:
    """Full acceptance again and again: without the two tokens of 3.5 the draft would go astray."""
    own, limits = method(Paper(0.0), 4), DecodeLimits(40)
    text, counters = decoded(own, SamplingParams(0.0), 0, limits)
    assert text == plain(SamplingParams(0.0), 0, limits)
    assert counters.forwards == 8
    assert set(counters.chances) == {1.0}


def test_a_draft_stops_after_a_token_that_is_unsure() -> None:
    sure, unsure = DraftedToken(1, 0.5), DraftedToken(2, 0.39)
    stop = ConfidenceStop(0.4)
    assert stop([])
    assert stop([unsure, sure])
    assert not stop([sure, unsure])
    own = method(Paper(0.0), 6, confidence=1.0)
    decoded(own, SamplingParams(0.0), 0, DecodeLimits(12))
    assert own.forwards == 6, "one token a step, two of which are written"


def test_drawn_drafts_keep_the_law() -> None:
    """The ratio test over what is truly drawn: the first two tokens against their exact law."""
    shaping, limits, count = SamplingParams(0.9), DecodeLimits(2), 1500
    target = ToyTarget(PROMPT, shaping)
    wanted = {
        (a, b): float(target.law(PROMPT)[a] * target.law([*PROMPT, a])[b])
        for a in range(WORDS)
        for b in range(WORDS)
    }
    own = method(Paper(1.5), 3, sample=True)
    seen: Counter[tuple[int, int]] = Counter()
    for seed in range(count):
        text, _ = decoded(own, shaping, seed, limits)
        seen[text[0], text[1]] += 1
    square = sum(
        (seen[pair] - count * p) ** 2 / (count * p) for pair, p in wanted.items() if count * p > 5
    )
    cells = sum(count * p > 5 for p in wanted.values())
    assert square < cells + 4 * (2 * cells) ** 0.5


def test_a_draw_of_the_targets_own_law_is_always_accepted() -> None:
    for shaping in (SamplingParams(0.9), SamplingParams(0.7, top_p=0.9)):
        _, counters = decoded(method(Paper(0.0), 3, sample=True), shaping, 5, DecodeLimits(24))
        assert counters.accepted == counters.drafted > 0


def test_a_draw_depends_on_the_request_alone() -> None:
    own = method(Paper(1.0), 3, sample=True)
    drafts = []
    for _ in range(2):
        for seed in (5, 6, 7):
            drafter = own.begin(DraftRequest(SamplingParams(1.0), seed))
            drafter.extend(PROMPT)
            proposed = drafter.propose(3)
            assert isinstance(proposed, DraftProposal)
            drafts.append(proposed.tree.tokens)
    assert drafts[:3] == drafts[3:]
    assert len(set(drafts)) > 1


def test_draws_know_the_law_they_came_of() -> None:
    logits = Paper().logits(PROMPT).astype("float32")
    chosen = SampledChoice(SamplingParams(0.7), 1, WORDS + 2).choose(logits, 5, -1)
    assert chosen.distribution is not None
    assert chosen.distribution.shape == (WORDS + 2,)
    assert chosen.distribution[:WORDS].tolist() == SamplingParams(0.7).distribution(logits).tolist()
    assert chosen.confidence == chosen.distribution[chosen.token] > 0


def test_the_likeliest_token_and_the_next() -> None:
    logits = Paper().logits(PROMPT).astype("float32")
    chosen = GreedyChoice().choose(logits, 5, 3)
    law = SamplingParams(1.0).distribution(logits)
    order = sorted(range(WORDS), key=lambda token: -law[token])
    assert (chosen.token, chosen.runner_up[0], chosen.stamp) == (order[0], order[1], 3)
    assert chosen.confidence == pytest.approx(law[order[0]])
    assert chosen.runner_up[1] == pytest.approx(law[order[1]])


def test_a_model_that_fails_is_left_behind() -> None:
    paper = Paper(0.0)
    paper.fails_at = 6
    decoding = started(method(paper), SamplingParams(0.0), 0, DecodeLimits(30))
    text = [token for step in decoding for token in step]
    assert text == plain(SamplingParams(0.0), 0, DecodeLimits(30))
    assert decoding.speculation.fallback is not None
    assert "torn" in decoding.speculation.fallback.reason


def test_a_full_context_is_no_draft() -> None:
    text, counters = decoded(
        method(Paper(0.0, context_tokens=12)), SamplingParams(0.0), 0, DecodeLimits(30)
    )
    assert text == plain(SamplingParams(0.0), 0, DecodeLimits(30))
    assert counters.drafted == 7, "four after 5 tokens; after 10 the model reads two more"


def test_slots_go_to_the_next_sequence() -> None:
    paper = Paper(1.0)
    own = method(paper)
    for seed in range(4):
        decoded(own, SamplingParams(0.8), seed)
    assert {span.slot for spans in paper.passes for span in spans} == {0}
