"""The rules keep the target's law exactly: by going through every way that chance can go."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.decoding.speculative.enumerated import Script, law_of
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.decoding.speculative.acceptance import Acceptor, ExactMatch, RejectionSampling
from weft.decoding.speculative.draft import ROOT, ChildDistribution, DraftTree, DrawKind

Array = NDArray[np.float64]
WORDS = 3


def laws(seed: int, *, sharp: bool = True) -> dict[tuple[int, ...], Array]:
    """A law for every text of up to two tokens; sharp ones have tokens that are impossible."""
    rng = np.random.default_rng(seed)
    texts = [text for length in range(3) for text in product(range(WORDS), repeat=length)]
    found = {}
    for text in texts:
        weights = rng.random(WORDS) ** (4 if sharp else 1)
        if sharp and rng.random() < 0.3:
            weights[rng.integers(WORDS)] = 0.0
        found[text] = weights / weights.sum()
    return found


def drafted(
    script: Script, q: dict[tuple[int, ...], Array], kind: DrawKind, width: int
) -> DraftTree:
    """Two levels: `width` children of the root, and one child of the first of those."""
    tokens: list[int] = []
    parents: list[int] = []
    law = q[()].copy()
    for _ in range(width):
        if not law.sum() > 0:
            break
        tokens.append(script.one_of(list(law / law.sum())))
        parents.append(ROOT)
        if kind == "without_replacement":
            law[tokens[-1]] = 0.0
    second = q[(tokens[0],)]
    tokens.append(script.one_of(list(second)))
    parents.append(0)
    proposals = {ROOT: ChildDistribution(kind, q[()]), 0: ChildDistribution(kind, second)}
    return DraftTree(tuple(tokens), tuple(parents), proposals)


def two_tokens(
    script: Script, tree: DraftTree, p: dict[tuple[int, ...], Array], rule: Acceptor
) -> tuple[int, ...]:
    """The first two tokens that come of it, the second without a draft if need be."""

    def law_at(node: int) -> Array:
        return p[tuple(tree.tokens[i] for i in tree.path(node))]

    text = rule.walk(tree, law_at, script, 0).tokens(tree)[:2]
    return text if len(text) == 2 else (*text, script.token(p[text], 1))


def assert_law(found: dict[tuple[int, ...], float], p: dict[tuple[int, ...], Array]) -> None:
    for first, second in product(range(WORDS), repeat=2):
        wanted = p[()][first] * p[(first,)][second]
        assert found.get((first, second), 0.0) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("kind", ["independent", "without_replacement"])
@pytest.mark.parametrize("width", [1, 2, 3])
@given(seed=st.integers(0, 10_000))
def test_the_ratio_test_keeps_the_law_of_the_target(kind: DrawKind, width: int, seed: int) -> None:
    p, q = laws(seed), laws(seed + 1)

    def happen(script: Script) -> tuple[int, ...]:
        return two_tokens(script, drafted(script, q, kind, width), p, RejectionSampling())

    assert_law(law_of(happen), p)


@pytest.mark.parametrize("rule", [ExactMatch(), RejectionSampling()], ids=["match", "ratio"])
@given(seed=st.integers(0, 10_000), width=st.integers(0, WORDS))
def test_a_draft_that_nobody_drew_keeps_the_law_too(rule: Acceptor, seed: int, width: int) -> None:
    p = laws(seed)
    first = [int(token) for token in np.random.default_rng(seed).permutation(WORDS)[:width]]
    children = tuple(range(WORDS)) if width else ()
    tree = DraftTree((*first, *children), (*[ROOT] * width, *[0] * len(children)))
    assert_law(law_of(lambda script: two_tokens(script, tree, p, rule)), p)


def test_drafts_taken_for_drawn_ones_would_not() -> None:
    """The mistake that public code makes: the likeliest tokens, tested as if they were drawn."""
    p, q = laws(3, sharp=False), laws(4, sharp=False)
    likeliest = tuple(int(token) for token in np.argsort(-q[()])[:2])
    wrong = DraftTree(likeliest, (ROOT, ROOT), {ROOT: ChildDistribution("independent", q[()])})
    found = law_of(lambda script: two_tokens(script, wrong, p, RejectionSampling()))
    with pytest.raises(AssertionError):
        assert_law(found, p)


@given(
    seed=st.integers(0, 2**64),
    drafts=st.lists(st.lists(st.integers(0, WORDS - 1), max_size=5), max_size=8),
    temperature=st.sampled_from([0.0, 0.7, 1.3]),
)
def test_text_with_drafts_is_text_without(
    seed: int, drafts: list[list[int]], temperature: float
) -> None:
    """Token for token, whatever is drafted."""
    shaping = SamplingParams(temperature, top_p=0.95)

    def law(text: list[int]) -> Array:
        rng = np.random.default_rng([*text, 7])
        return shaping.distribution(rng.normal(size=WORDS).astype(np.float32))

    chance = CounterRng(seed)
    plain: list[int] = []
    for position in range(16):
        plain.append(chance.token(law(plain), position))
    text: list[int] = []
    for draft in [*drafts, *[[]] * 16]:
        tree = DraftTree.chain(draft)
        begun = list(text)

        def law_at(node: int, tree: DraftTree = tree, begun: list[int] = begun) -> Array:
            return law([*begun, *(tree.tokens[i] for i in tree.path(node))])

        text += ExactMatch().walk(tree, law_at, chance, len(text)).tokens(tree)
    assert text[:16] == plain


def test_what_is_certain_is_accepted_to_the_end_with_a_bonus() -> None:
    certain = {text: np.eye(WORDS)[len(text)] for text in laws(0)}  # 0, 1, 2
    tree = DraftTree.chain([0, 1])
    walk = ExactMatch().walk(tree, lambda node: certain[tree.tokens[: node + 1]], CounterRng(0), 0)
    assert walk.path == (0, 1)
    assert walk.bonus == 2
    assert walk.tried == 2


@given(st.integers(0, 2**70), st.integers(0, 10**6), st.integers(0, 63))
def test_numbers_depend_on_where_they_are_used(seed: int, position: int, sibling: int) -> None:
    one, other = CounterRng(seed), CounterRng(seed)
    other.token(np.ones(3) / 3, position + 1)
    half = one.accepts(0.5, position, sibling)
    assert other.accepts(0.5, position, sibling) is half
    assert one.accepts(1.0, position, sibling)
    assert not one.accepts(0.0, position, sibling)


def test_tokens_come_at_their_rate() -> None:
    law = np.array([0.0, 0.7, 0.3, 0.0])
    counts = np.bincount(
        [CounterRng(5).token(law, position) for position in range(4000)], minlength=4
    )
    assert counts[0] == counts[3] == 0
    assert abs(counts[1] / 4000 - 0.7) < 0.03, "four standard deviations"
