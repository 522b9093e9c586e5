"""The loop: blocks, progress, passes that are owed, reviews, looks, and what is counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.decoding.diffusion.toy import (
    END,
    MASK,
    TRAITS,
    AtEnd,
    Everything,
    Fours,
    Leftmost,
    Toy,
)
from weft.decoding.diffusion.action import Action, SlotTokens
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.denoising import (
    GREEDY,
    DenoisingRow,
    denoise,
    denoise_all,
    denoise_text,
)
from weft.decoding.diffusion.ports import DecoderConfig, Need, Refusal
from weft.decoding.diffusion.query import Query
from weft.decoding.diffusion.stats import ProbeAnswer, SampledTokens, Stats
from weft.decoding.sampling import CounterRng

PLUGS = DecoderConfig(Leftmost(2), Fours(), Everything(), AtEnd())


def begun(canvas: Canvas, plugs: DecoderConfig = PLUGS, seed: int = 0) -> DenoisingRow:
    return DenoisingRow(canvas, plugs, TRAITS, CounterRng(seed), GREEDY)


def done(canvas: Canvas, plugs: DecoderConfig = PLUGS, toy: Toy | None = None) -> DenoisingRow:
    return denoise_text(toy or Toy(), canvas, plugs, CounterRng(0))


def test_blocks_are_written_left_to_right() -> None:
    row = done(Canvas([1, 2, 3], 6, MASK))

    assert row.kept.tolist() == [3, 4, 5, 6, 7, 0]
    assert row.finish == "length"
    assert row.counters.order == [(0, 0), (0, 1), (1, 2), (1, 3), (2, 4), (2, 5)]
    assert (row.counters.forwards, row.counters.tokens) == (3, 27)
    assert row.counters.tokens_per_forward == 2.0
    assert row.counters.tokens_per_query == pytest.approx(6 / 27)


def test_nothing_to_write_is_over_at_once() -> None:
    row = begun(Canvas([1], 0, MASK))

    assert row.over
    assert row.kept.tolist() == []
    assert row.counters.tokens_per_forward == 0.0
    denoise([row], Toy())
    assert row.counters.forwards == 0


def test_literals_cost_nothing_and_stay() -> None:
    row = done(Canvas([1], 8, MASK, literals=dict.fromkeys(range(4), 7)))

    assert row.kept.tolist() == [7, 7, 7, 7, 5, 6, 7, 0]
    assert row.counters.forwards == 2
    only = begun(Canvas([1], 4, MASK, literals=dict.fromkeys(range(4), 7)))
    assert only.over
    assert only.kept.tolist() == [7, 7, 7, 7]


def test_a_terminator_ends_the_text_where_all_before_it_is_decided() -> None:
    toy = Toy(lambda slot: END if slot == 6 else 1)
    row = done(Canvas([1], 12, MASK), toy=toy)

    assert row.finish == "stop"
    assert row.kept.tolist() == [1] * 5
    assert row.counters.kept == 5
    assert row.counters.discarded == 1


@dataclass(frozen=True)
class Idle(Leftmost):
    """Never commits anything."""

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> Idle:
        return self

    def propose(self, _stats: Stats, _drawn: SampledTokens, _canvas: Canvas) -> Action:
        return Action()


@dataclass(frozen=True)
class Restless(Leftmost):
    """Opens again whatever was written."""

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> Restless:
        return self

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        decided = np.flatnonzero(canvas.ours & ~canvas.undecided & ~canvas.frozen)
        commit = SlotTokens.of(stats.slots[stats.open][:1], drawn.ids[stats.open][:1])
        return Action(commit=commit, remask=decided, again=True)


def test_who_proposes_nothing_still_gets_on() -> None:
    row = done(Canvas([1], 5, MASK), replace(PLUGS, commit=Idle()))

    assert row.counters.commits == row.counters.forced == 5
    assert row.counters.order[0] == (0, 0)  # the surest: certainty falls to the right


def test_who_undoes_everything_comes_to_an_end() -> None:
    row = done(Canvas([1], 4, MASK), replace(PLUGS, commit=Restless()))

    assert row.finish == "length"
    assert row.counters.commits - row.counters.remasks == 4
    assert row.counters.forwards <= 4 + 4


def test_a_finished_block_is_read_again_where_that_is_owed() -> None:
    toy = Toy()
    row = done(Canvas([1], 8, MASK), replace(PLUGS, cache=Everything(owes=True)), toy)

    assert dict(row.counters.passes) == {"denoise": 4, "persist": 1}
    persist = toy.passes[2][0]
    assert persist.kind == "persist"
    assert persist.wanted.tolist() == []
    kept = done(Canvas([1], 8, MASK), replace(PLUGS, cache=Everything(owes=True), keep=True))
    assert dict(kept.counters.passes) == {"denoise": 4, "persist": 2}


def test_the_pass_over_a_block_may_write_the_first_slot_of_the_next() -> None:
    row = done(
        Canvas([1], 8, MASK), replace(PLUGS, cache=Everything(owes=True, predicts=True)), Toy()
    )

    assert row.kept.tolist() == [1, 2, 3, 4, 5, 6, 7, 0]
    assert row.counters.order[4] == (2, 4)
    assert dict(row.counters.passes) == {"denoise": 4, "persist": 1}


@dataclass(frozen=True)
class Minding:
    """Refuses a text with `word`; notes what it was shown."""

    word: int
    seen: list[tuple[int, int]] = field(default_factory=list)

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> Minding:
        return self

    def review(self, canvas: Canvas, end: int) -> Refusal | None:
        self.seen.append((canvas.released, end))
        return Refusal("a word") if self.word in canvas.ids[:end] else None


def test_nothing_is_shown_before_it_was_reviewed() -> None:
    guard = Minding(-1)
    row = begun(Canvas([1], 8, MASK), replace(PLUGS, guards=(guard,)))
    shown = []
    while not row.over:
        denoise([row], Toy())
        shown.append(len(row.kept))

    assert shown == [0, 4, 4, 8]
    assert guard.seen == [(1, 5), (5, 9)]


def test_a_refusal_ends_the_text_and_shows_nothing_of_the_block() -> None:
    row = done(Canvas([1], 8, MASK), replace(PLUGS, guards=(Minding(6),)))

    assert row.finish == "refused"
    assert row.refusal == Refusal("a word")
    assert row.kept.tolist() == [1, 2, 3, 4]
    assert row.counters.discarded == 4


class Doubting:
    """Looks a second time, and commits what it is told then."""

    def propose(self, _stats: Stats, _drawn: SampledTokens, canvas: Canvas) -> Action:
        slots = canvas.open
        feed = np.arange(canvas.length)
        query = Query(canvas, feed, slots, canvas.length, scratch=True, kind="look")
        return Action(look=(query, query))

    def looked(self, answers: Sequence[ProbeAnswer], canvas: Canvas) -> Action:
        assert len(answers) == 2
        stats, drawn = answers[1].stats, answers[1].drawn
        assert stats.slots.tolist() == canvas.open.tolist()
        assert stats.top_ids[:, 0].tolist() == drawn.ids.tolist()
        return Action(commit=SlotTokens.of(stats.slots, drawn.ids))


@dataclass(frozen=True)
class Doubt(Leftmost):
    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> Doubting:  # type: ignore[override]
        return Doubting()


def test_a_policy_may_look_again_before_it_decides() -> None:
    row = done(Canvas([1], 8, MASK), replace(PLUGS, commit=Doubt()))

    assert row.kept.tolist() == [1, 2, 3, 4, 5, 6, 7, 0]
    assert dict(row.counters.passes) == {"denoise": 2, "look": 2}
    assert row.counters.tokens == 6 * 9


@dataclass(frozen=True)
class Away:
    """Guidance: forbids a token, and asks for a second answer, which it adds."""

    token: int
    asked: list[int] = field(default_factory=list)

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> Away:
        return self

    def asks(self, query: Query) -> Query | None:
        self.asked.append(len(query.wanted))
        return replace(query, scratch=True, kind="unconditional")

    def guided(
        self,
        logits: NDArray[np.float32],
        slots: Slots,
        answer: NDArray[np.float32] | None,
        _canvas: Canvas,
    ) -> NDArray[np.float32]:
        assert answer is not None
        assert answer.shape == logits.shape == (len(slots), TRAITS.vocabulary)
        changed = logits + answer
        changed[:, self.token] = -np.inf
        return changed


def test_guidance_changes_what_is_drawn_and_its_query_is_counted() -> None:
    row = done(Canvas([1], 4, MASK), replace(PLUGS, guidance=(Away(2),)))

    assert row.kept.tolist() == [1, 0, 3, 4]
    assert row.counters.forwards == 2
    assert row.counters.tokens == 2 * 2 * 5


@dataclass(frozen=True)
class First:
    """A verifier that lets one commit through, after a pass of its own."""

    passes: int = 0
    beyond: bool = False

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> Firsts:
        return Firsts()


class Firsts:
    passes = 0

    def verified(
        self, action: Action, _stats: Stats, _drawn: SampledTokens, _canvas: Canvas
    ) -> Action:
        self.passes += 1
        return action.committing(action.commit.at(np.arange(len(action.commit)) < 1))


def test_a_verifier_lets_less_through_and_its_passes_are_told_apart() -> None:
    row = done(Canvas([1], 4, MASK), replace(PLUGS, verifiers=(First(),)))

    assert row.counters.forwards == 4
    assert row.counters.passes["supervisor"] == 4


def test_a_policy_that_asks_for_more_sees_more() -> None:
    plugs = replace(PLUGS, commit=Leftmost(1, frozenset({"decided", "beyond", "distribution"})))
    toy = Toy()
    done(Canvas([1], 6, MASK), plugs, toy)

    wanted = [one[0].wanted.tolist() for one in toy.passes]
    assert wanted[:2] == [[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]]
    assert wanted[4] == [5, 6]


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(1, 3)), min_size=1, max_size=5
    )
)
def test_rows_do_not_depend_on_their_mates(asked: list[tuple[int, int, int]]) -> None:
    def rows() -> list[DenoisingRow]:
        return [
            begun(
                Canvas([1] * prompt, length, MASK, row=n), replace(PLUGS, commit=Leftmost(count)), n
            )
            for n, (prompt, length, count) in enumerate(asked)
        ]

    together, alone = rows(), rows()
    denoise_all(together, Toy())
    for row in alone:
        denoise_all([row], Toy())

    assert [row.kept.tolist() for row in together] == [row.kept.tolist() for row in alone]
    assert [row.counters for row in together] == [row.counters for row in alone]


@dataclass(frozen=True)
class Growing(Fours):
    """The canvas grows by two after the first pass, then the window closes in on one slot."""

    def moved(self, canvas: Canvas, stats: Stats) -> range:
        assert stats.slots.tolist() == canvas.open.tolist()
        if canvas.step == 0:
            canvas.grow(2, MASK)
            return range(canvas.first, canvas.length)
        return range(canvas.decided_to, canvas.decided_to + 1)


def test_a_schedule_moves_its_window_before_anything_is_proposed() -> None:
    row = done(Canvas([1], 2, MASK, limit=9), replace(PLUGS, schedule=Growing(size=2)))

    assert row.kept.tolist() == [1, 2, 3, 4]
    # nothing in the pass that made the canvas grow, then one slot a pass although two were allowed
    assert row.counters.order == [(1, 0), (2, 1), (3, 2), (4, 3)]
    assert row.counters.forwards == 5


@dataclass(frozen=True)
class Reconsidering(Leftmost):
    """Writes all, and takes the terminator back in a second pass."""

    needs: frozenset[Need] = frozenset({"decided"})

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> Reconsidering:
        return self

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        if stats.open.any():
            return Action(commit=SlotTokens.of(stats.slots, drawn.ids), again=True)
        ends = stats.slots[canvas.ids[stats.slots] == END]
        return Action(edit=SlotTokens.of(ends, np.ones_like(ends)))


def test_a_terminator_that_may_still_be_taken_back_ends_nothing() -> None:
    toy = Toy(lambda slot: END if slot == 2 else 3)
    row = done(Canvas([1], 4, MASK), replace(PLUGS, commit=Reconsidering()), toy)

    assert row.finish == "length"
    assert row.kept.tolist() == [3, 1, 3, 3]
    assert row.counters.edits == 1
