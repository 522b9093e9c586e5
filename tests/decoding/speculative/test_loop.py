"""The loop: the same text whatever is drafted, to the token; and what it takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decoding.speculative.toy import WORDS, Told, ToyTarget, Wild
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.decoding.speculative.drafter import (
    Drafter,
    PerSequenceMethod,
)
from weft.decoding.speculative.drafters.ngram.lookup import LookupDrafter
from weft.decoding.speculative.drafters.ngram.suffix import SuffixDrafter, SuffixOptions
from weft.decoding.speculative.loop import DecodeLimits, DecodeLoop
from weft.decoding.speculative.speculation import SpeculativeSequence

PROMPT = [1, 2, 3, 1, 2]
shapings = st.sampled_from(
    [SamplingParams(0.0), SamplingParams(0.8, top_p=0.9), SamplingParams(1.3, top_k=3)]
)
LIMITS = DecodeLimits(40)


def decoded(
    drafter: Drafter,
    nodes: int,
    shaping: SamplingParams,
    seed: int,
    limits: DecodeLimits = LIMITS,
) -> tuple[list[int], DecodeLoop, ToyTarget]:
    target = ToyTarget(PROMPT, shaping)
    speculation = SpeculativeSequence(PerSequenceMethod("toy", lambda: drafter, nodes), WORDS)
    speculation.extend(PROMPT)
    decoding = DecodeLoop(target, speculation, CounterRng(seed), limits, len(PROMPT))
    text = [token for step in decoding for token in step]
    return text, decoding, target


def plain(shaping: SamplingParams, seed: int, limits: DecodeLimits = LIMITS) -> list[int]:
    """Decoding as it always was."""
    target, chance = ToyTarget(PROMPT, shaping), CounterRng(seed)
    while len(target.text) < len(PROMPT) + limits.max_tokens:
        target.text.append(chance.token(target.law(target.text), len(target.text)))
        if target.text[-1] in limits.end_ids:
            break
    return target.text[len(PROMPT) :]


@given(shapings, st.integers(0, 2**64), st.integers(0, 8), st.integers(0, 40))
def test_any_draft_gives_the_text_of_none(
    shaping: SamplingParams, seed: int, most: int, length: int
) -> None:
    limits = DecodeLimits(length, frozenset({4}))
    wanted = plain(shaping, seed, limits)
    for drafter in (Wild(seed), LookupDrafter(), SuffixDrafter(SuffixOptions(tree=True))):
        text, decoding, target = decoded(drafter, most, shaping, seed, limits)
        assert text == wanted
        assert decoding.done
        assert decoding.counters.tokens == len(text)
        assert decoding.counters.forwards == target.passes <= len(text)


@given(shapings, st.integers(0, 1000), st.integers(1, 7))
def test_a_draft_of_the_truth_costs_a_pass_for_all_of_it(
    shaping: SamplingParams, seed: int, most: int
) -> None:
    wanted = plain(shaping, seed)
    told = Told([*PROMPT, *wanted])
    text, decoding, _ = decoded(told, most, shaping, seed)
    assert text == wanted
    assert decoding.counters.forwards == -(-len(wanted) // (most + 1))
    assert set(decoding.counters.chances) == {1.0}


def test_a_draft_that_is_always_wrong_costs_no_token() -> None:
    shaping = SamplingParams(0.0)
    wanted = plain(shaping, 0)
    text, decoding, _ = decoded(Told([*PROMPT, *wanted], wrong=True), 4, shaping, 0)
    assert text == wanted
    assert decoding.counters.tokens_per_forward == 1.0
    assert decoding.counters.chances[0] == 0.0
    assert decoding.counters.tested[1] == 0, "nothing is tested below what was rejected"


@pytest.mark.parametrize("most", [0, 5])
def test_an_end_inside_a_draft_ends_the_text_there(most: int) -> None:
    shaping = SamplingParams(0.0)
    whole = plain(shaping, 3)
    end = next(token for token in whole[2:] if token not in whole[:2])
    limits = DecodeLimits(40, frozenset({end}))
    text, decoding, _ = decoded(Told([*PROMPT, *whole]), most, shaping, 3, limits)
    assert text == whole[: whole.index(end) + 1]
    assert decoding.done


def test_nothing_is_asked_for_a_text_of_nothing() -> None:
    text, _, target = decoded(LookupDrafter(), 3, SamplingParams(), 0, DecodeLimits(0))
    assert text == []
    assert target.passes == 0


def test_the_toy_is_no_constant() -> None:
    assert len(set(plain(SamplingParams(1.3), 1))) == WORDS
