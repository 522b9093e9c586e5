"""Suffix and hybrid drafters: which of two drafts is taken, what is remembered, which options."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from weft.core.errors import SpecError
from weft.decoding.network.network import Network
from weft.decoding.speculative.draft import DraftTree
from weft.decoding.speculative.drafter import Drafter, SpeculativeMethod
from weft.decoding.speculative.drafters.ngram import hybrid, lookup, suffix
from weft.decoding.speculative.drafters.ngram.hybrid import HybridDrafter
from weft.decoding.speculative.drafters.ngram.lookup import LookupDrafter
from weft.decoding.speculative.drafters.ngram.suffix import (
    RecordingSuffixDrafter,
    SharedTexts,
    SuffixOptions,
)
from weft.decoding.speculative.presets import Options, made

ANY = Network.__new__(Network)  # these methods look at tokens only


def tokens_of(drafter: Drafter, most: int) -> tuple[int, ...]:
    proposed = drafter.propose(most)
    return (proposed if isinstance(proposed, DraftTree) else proposed.tree).tokens


def hybrid_of(shared: SharedTexts | None = None) -> HybridDrafter:
    return HybridDrafter(SuffixOptions(), shared, LookupDrafter())


def test_the_draft_that_promises_more_tokens_is_taken() -> None:
    text = [1, 2, 3, 4, 5, 6, 9, 1]
    counts, both = RecordingSuffixDrafter(SuffixOptions(), None), hybrid_of()
    for drafter in (counts, both):
        drafter.extend(text)
    assert tokens_of(counts, 5) == (2,)  # a match of one token is followed for one
    assert tokens_of(both, 5) == (2, 3, 4, 5, 6)
    for drafter in (counts, both):
        drafter.extend([2, 3, 4, 5, 6, 9, 1, 2, 3])
    assert tokens_of(both, 3) == tokens_of(counts, 3) == (4, 5, 6)


def test_a_copy_that_is_wrong_is_trusted_less() -> None:
    drafter = hybrid_of()
    drafter.extend([1, 2, 3, 4, 1, 2, 3, 4, 1])
    hopes = []
    for wrong in range(50, 60):
        drafter.propose(8)
        drafter.extend([wrong, 1])
        hopes.append(drafter._hope)
    assert hopes == sorted(hopes, reverse=True)
    assert hopes[-1] < 0.3


def test_what_is_remembered_begins_with_the_end_of_the_prompt() -> None:
    shared = SharedTexts(4)
    first = RecordingSuffixDrafter(SuffixOptions(depth=4), shared)
    first.extend([90, 91, 92, 93, 94, 95])
    first.extend([1, 2])
    first.extend([3])
    assert first.written == [92, 93, 94, 95, 1, 2, 3]


@pytest.mark.parametrize("name", ["suffix", "hybrid"])
def test_sequences_learn_of_those_that_ended(name: str) -> None:
    method = made(name, ANY, {})
    one = method.begin()
    one.extend([7, 8])
    one.extend([1, 2, 3, 4, 5])
    other = method.begin()
    other.extend([7, 8])
    assert tokens_of(other, 4) == ()
    method.end(one)
    assert tokens_of(other, 4) == (1, 2)[: len(tokens_of(other, 4))] != ()


@pytest.mark.parametrize("name", ["suffix", "hybrid"])
def test_sequences_that_share_nothing_learn_nothing(name: str) -> None:
    method = made(name, ANY, {"shared": False})
    one, other = method.begin(), method.begin()
    one.extend([7, 8, 1, 2, 3])
    method.end(one)
    other.extend([7, 8])
    assert tokens_of(other, 4) == ()


def test_what_is_remembered_is_bounded() -> None:
    method = made("suffix", ANY, {"nodes": 1000})
    assert isinstance(method, suffix.SuffixMethod)
    assert method.shared is not None
    for number in range(40):
        drafter = method.begin()
        drafter.extend([number])
        drafter.extend([number * 100 + at for at in range(60)])
        method.end(drafter)
    assert method.shared.trie.nodes <= 1000
    assert len(method.shared) < 40


def longest(method: SpeculativeMethod) -> int:
    return method.nodes


@pytest.mark.parametrize("preset", [lookup.PRESETS[0], suffix.PRESETS[0], hybrid.PRESETS[0]])
def test_the_number_of_tokens_is_an_option(preset: object) -> None:
    name = preset.name  # type: ignore[attr-defined]
    assert longest(made(name, ANY, {"num_speculative_tokens": 3})) == 3


WRONG: Mapping[str, Options] = {
    "num_speculative_tokens": {"num_speculative_tokens": 0},
    "longest": {"longest": 17},
    "shortest": {"longest": 2, "shortest": 3},
    "which": {"which": "middle"},
}


@pytest.mark.parametrize("said", WRONG)
def test_an_option_that_cannot_be_is_named(said: str) -> None:
    with pytest.raises(SpecError, match=said) as caught:
        made("lookup", ANY, WRONG[said])
    assert caught.value.hint


@pytest.mark.parametrize("options", [{"shared": 1}, {"least": 1.5}, {"depth": 1}, {"nodes": 2}])
def test_options_of_tries_are_checked(options: Options) -> None:
    with pytest.raises(SpecError, match=next(iter(options))):
        made("suffix", ANY, options)
