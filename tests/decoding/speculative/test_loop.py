"""The loop: the same text whatever is drafted, to the token; and what it takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decoding.speculative.toy import WORDS, Told, ToyTarget, Wild
from weft.decoding.speculative.chance import Keyed
from weft.decoding.speculative.drafter import Drafter
from weft.decoding.speculative.drafters.lookup import Lookup
from weft.decoding.speculative.drafters.suffix.drafter import Suffixes, SuffixOptions
from weft.decoding.speculative.law import Shaping
from weft.decoding.speculative.lengths import Always, Lengths
from weft.decoding.speculative.loop import Decoding, Limits
from weft.decoding.speculative.method import Single
from weft.decoding.speculative.speculation import Speculation

PROMPT = [1, 2, 3, 1, 2]
shapings = st.sampled_from([Shaping(0.0), Shaping(0.8, top_p=0.9), Shaping(1.3, top_k=3)])
LIMITS = Limits(40)


def decoded(
    drafter: Drafter, lengths: Lengths, shaping: Shaping, seed: int, limits: Limits = LIMITS
) -> tuple[list[int], Decoding, ToyTarget]:
    target = ToyTarget(PROMPT, shaping)
    speculation = Speculation(Single("toy", lambda: drafter, lambda: lengths), WORDS)
    speculation.extend(PROMPT)
    decoding = Decoding(target, speculation, Keyed(seed), limits, len(PROMPT))
    text = [token for step in decoding for token in step]
    return text, decoding, target


def plain(shaping: Shaping, seed: int, limits: Limits = LIMITS) -> list[int]:
    """Decoding as it always was."""
    target, chance = ToyTarget(PROMPT, shaping), Keyed(seed)
    while len(target.text) < len(PROMPT) + limits.max_tokens:
        target.text.append(chance.token(target.law(target.text), len(target.text)))
        if target.text[-1] in limits.end_ids:
            break
    return target.text[len(PROMPT) :]


@given(shapings, st.integers(0, 2**64), st.integers(0, 8), st.integers(0, 40))
def test_any_draft_gives_the_text_of_none(
    shaping: Shaping, seed: int, most: int, length: int
) -> None:
    limits = Limits(length, frozenset({4}))
    wanted = plain(shaping, seed, limits)
    for drafter in (Wild(seed), Lookup(), Suffixes(SuffixOptions(tree=True))):
        text, decoding, target = decoded(drafter, Always(most), shaping, seed, limits)
        assert text == wanted
        assert decoding.done
        assert decoding.counters.tokens == len(text)
        assert decoding.counters.forwards == target.passes <= len(text)


@given(shapings, st.integers(0, 1000), st.integers(1, 7))
def test_a_draft_of_the_truth_costs_a_pass_for_all_of_it(
    shaping: Shaping, seed: int, most: int
) -> None:
    wanted = plain(shaping, seed)
    told = Told([*PROMPT, *wanted])
    text, decoding, _ = decoded(told, Always(most), shaping, seed)
    assert text == wanted
    assert decoding.counters.forwards == -(-len(wanted) // (most + 1))
    assert set(decoding.counters.chances) == {1.0}


def test_a_draft_that_is_always_wrong_costs_no_token() -> None:
    shaping = Shaping(0.0)
    wanted = plain(shaping, 0)
    text, decoding, _ = decoded(Told([*PROMPT, *wanted], wrong=True), Always(4), shaping, 0)
    assert text == wanted
    assert decoding.counters.tokens_per_forward == 1.0
    assert decoding.counters.chances[0] == 0.0
    assert decoding.counters.tested[1] == 0, "nothing is tested below what was rejected"


class Learning:
    """Implements `Lengths`: one more than was accepted last."""

    def __init__(self) -> None:
        self._next = 4

    def length(self) -> int:
        return self._next

    def observe(self, drafted: int, accepted: int) -> None:
        assert 0 <= accepted <= drafted
        self._next = accepted + 1


@given(st.integers(0, 100), shapings)
def test_lengths_that_learn_leave_the_text_alone(seed: int, shaping: Shaping) -> None:
    text, decoding, _ = decoded(Lookup(), Learning(), shaping, seed)
    assert text == plain(shaping, seed)
    counters = decoding.counters
    assert counters.accepted + counters.forwards == counters.tokens
    assert counters.tried <= counters.drafted


@pytest.mark.parametrize("most", [0, 5])
def test_an_end_inside_a_draft_ends_the_text_there(most: int) -> None:
    shaping = Shaping(0.0)
    whole = plain(shaping, 3)
    end = next(token for token in whole[2:] if token not in whole[:2])
    limits = Limits(40, frozenset({end}))
    text, decoding, _ = decoded(Told([*PROMPT, *whole]), Always(most), shaping, 3, limits)
    assert text == whole[: whole.index(end) + 1]
    assert decoding.done


def test_nothing_is_asked_for_a_text_of_nothing() -> None:
    text, _, target = decoded(Lookup(), Always(3), Shaping(), 0, Limits(0))
    assert text == []
    assert target.passes == 0


def test_the_toy_is_no_constant() -> None:
    assert len(set(plain(Shaping(1.3), 1))) == WORDS
