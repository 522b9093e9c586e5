"""Lookahead: its window and pool by hand, and the same text as without."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.decoding.speculative.rows import SHAPINGS, alone, plain, together
from tests.serving.local.playback import EXACT
from tests.serving.local.tiny import END
from weft.core.errors import SpecError
from weft.decoding.network.network import Network
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.decoding.speculative.acceptance import ExactMatch
from weft.decoding.speculative.draft import ROOT
from weft.decoding.speculative.drafter import TargetOutputs
from weft.decoding.speculative.drafters.ngram.lookahead import (
    JacobiWindow,
    LookaheadDrafter,
    LookaheadOptions,
    NgramPool,
)
from weft.decoding.speculative.loop import DecodeLimits
from weft.decoding.speculative.presets import made

PROMPTS = ([5, 9, 5, 9, 5, 9, 17], [40, 41, 42, 43, 40, 41], list(range(60, 90)), [7])
LIMITS = DecodeLimits(40, frozenset({END}))


@pytest.fixture(scope="module")
def network(tiny_path: Path) -> Network:
    return Network.load(tiny_path, EXACT)


def counting() -> JacobiWindow:
    tokens = iter(range(1000))
    return JacobiWindow(3, 3, lambda: next(tokens))


def test_the_window_fills_row_by_row_and_moves_on_with_the_text() -> None:
    window = counting()
    assert window.rows == [[0, 1, 2, 3, 4]]
    assert not window.full
    window.root(50)
    window.advance([10, 11, 12, 13, 14])
    window.root(51)
    assert window.rows == [[51, 2, 3, 4], [11, 12, 13, 14]]
    window.advance([20, 21, 22, 23])
    window.root(52)
    assert window.rows == [[52, 3, 4], [12, 13, 14], [21, 22, 23]]
    assert window.full
    assert list(window.ngrams([30, 31, 32])) == [
        (52, 12, 21, 30),
        (3, 13, 22, 31),
        (4, 14, 23, 32),
    ]
    window.advance([30, 31, 32])
    window.root(53)
    assert window.rows == [[53, 13, 14], [21, 22, 23], [30, 31, 32]]


def test_a_cell_sees_the_first_row_up_to_its_column_and_its_own_column() -> None:
    window = counting()
    window.advance([10] * 5)
    window.advance([20] * 4)
    plan = window.plan()
    cells = [(row, column) for row in range(3) for column in range(3)][1:]
    assert plan.depths == tuple(row + column for row, column in cells)
    assert set(plan.under) == {ROOT}
    for (row, column), sees in zip(cells, plan.sees, strict=True):
        wanted = {(0, c) for c in range(1, column + 1)} | {(r, column) for r in range(1, row + 1)}
        assert {cell for cell, seen in zip(cells, sees, strict=True) if seen} == wanted
        # one token for every position from the root on: what a sequence is
        assert sorted(r + c for r, c in wanted) == list(range(1, row + column + 1))


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=4, max_size=4), max_size=30), st.integers(1, 5)
)
def test_the_pool_keeps_the_latest_guesses_of_each_token(
    ngrams: list[list[int]], most: int
) -> None:
    pool = NgramPool(most)
    for ngram in ngrams:
        pool.add(ngram)
    for token in range(5):
        latest: list[tuple[int, ...]] = []
        for ngram in reversed(ngrams):
            if ngram[0] == token and tuple(ngram[1:]) not in latest:
                latest.append(tuple(ngram[1:]))
        assert pool.guesses(token) == latest[:most]
        tree = pool.tree(token, 100)
        paths = {tuple(tree.tokens[node] for node in tree.path(at)) for at in range(len(tree))}
        assert paths == {guess[:end] for guess in latest[:most] for end in (1, 2, 3)}
        for size in range(8):
            assert len(pool.tree(token, size)) == min(size, len(tree))


def seen(logits: list[int], rows: list[int]) -> TargetOutputs:
    """A pass in which the likeliest tokens are these, after the root and of the rows."""
    law = np.eye(100, dtype=np.float32)
    return TargetOutputs((0,), logits=law[logits], aux=law[rows] if rows else law[:0])


def test_ngrams_of_the_window_are_proposed_once_their_first_token_comes() -> None:
    drafter = LookaheadDrafter(LookaheadOptions(window=2, ngram=3, guesses=2, text=False))
    drafter.extend([1, 2])
    assert len(drafter.propose(4).aux) == 2  # a row of three cells, the root among them
    drafter.see(seen([10], [11, 12]))
    drafter.extend([10])
    draft = drafter.propose(4)
    assert not len(draft.tree)
    assert draft.aux.tokens[1:] == (11, 12)
    first = draft.aux.tokens[0]
    drafter.see(seen([11], [98, 20, 21]))  # the first row, then what follows the columns
    drafter.extend([11])
    assert not len(drafter.propose(4).tree)
    drafter.extend([10])
    assert drafter.propose(4).tree.tokens == (11, 20)
    drafter.extend([first])
    assert drafter.propose(4).tree.tokens == (12, 21)


def test_an_end_never_stands_in_the_window() -> None:
    drafter = LookaheadDrafter(LookaheadOptions(window=3, ngram=4, guesses=2), frozenset({9}))
    drafter.extend([9, 1, 9, 2, 9])
    for _ in range(6):
        draft = drafter.propose(3)
        assert 9 not in draft.aux.tokens
        drafter.see(seen([9] * (1 + len(draft.tree)), [9] * len(draft.aux)))


def test_a_pass_that_did_not_read_the_window_teaches_nothing() -> None:
    drafter = LookaheadDrafter(LookaheadOptions(window=3, ngram=3))
    drafter.extend([1, 2, 3])
    before = drafter.propose(3).aux.tokens
    drafter.see(seen([5], []))
    assert drafter.propose(3).aux.tokens == before
    assert not len(drafter.propose(0).aux), "where nothing may be drafted nothing is read"


@pytest.mark.parametrize("shaping", SHAPINGS)
@pytest.mark.parametrize("sizes", [{}, {"window": 7, "ngram": 5, "guesses": 7}, {"window": 1}])
def test_the_text_is_that_of_plain_decoding(
    network: Network, shaping: SamplingParams, sizes: dict[str, int]
) -> None:
    wanted = [plain(network, prompt, shaping, at, LIMITS) for at, prompt in enumerate(PROMPTS)]
    method = made("lookahead", network, sizes)
    for at, prompt in enumerate(PROMPTS):
        text, decoding = alone(network, prompt, method, shaping, at, LIMITS)
        assert text == wanted[at]
        assert decoding.speculation.fallback is None
    assert together(network, PROMPTS, method, shaping, LIMITS) == wanted


def test_it_gains_where_iterations_come_true() -> None:
    """Of a target that goes by the last token only every cell is right: whole n-grams come."""
    law = np.eye(31, dtype=np.float32)

    def after(tokens: Sequence[int]) -> NDArray[np.float32]:
        return law[[(3 * token + 1) % 31 for token in tokens]]

    drafter = LookaheadDrafter(LookaheadOptions(window=5, ngram=4, guesses=3, text=False))
    text = [1, 7, 20, 11, 30]
    drafter.extend(text)
    for _ in range(60):
        draft = drafter.propose(9)
        logits = after([text[-1], *draft.tree.tokens])
        laws = logits.astype(np.float64)
        walk = ExactMatch().walk(
            draft.tree, lambda node, of=laws: of[node + 1], CounterRng(0), len(text)
        )
        tokens = walk.tokens(draft.tree)
        drafter.see(TargetOutputs((0,), logits=logits, aux=after(draft.aux.tokens), walk=walk))
        drafter.extend(tokens)
        text += tokens
    assert len(text) > 2.5 * 60


@pytest.mark.parametrize("option", [{"window": 0}, {"ngram": 1}, {"guesses": "7"}, {"text": 1}])
def test_bad_options_are_refused(network: Network, option: dict[str, int]) -> None:
    with pytest.raises(SpecError, match=next(iter(option))):
        made("lookahead", network, option)
