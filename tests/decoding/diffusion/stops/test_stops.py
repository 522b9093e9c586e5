"""Ends: in the middle with gaps before them, at once, two of them, and one that is taken back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decoding.diffusion.hostile import END, MASK, TRAITS, Hostile
from tests.decoding.diffusion.policies.pass_statistics import seen
from tests.decoding.diffusion.toy import Toy
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.exact import NoCache
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import GREEDY, DenoisingRow, denoise_all, denoise_text
from weft.decoding.diffusion.policies.confidence import ThresholdPolicy
from weft.decoding.diffusion.policies.editing import TokenEditPolicy
from weft.decoding.diffusion.policies.fixed_pace import FixedPacePolicy as FixedPolicy
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.diffusion.schedules import FixedBlocks
from weft.decoding.diffusion.stops import EndOfTextStop, FirstTerminator
from weft.decoding.sampling import CounterRng

PLUGS = DecoderConfig(ThresholdPolicy(0.0), FixedBlocks(), NoCache(), FirstTerminator())
STOPS = (FirstTerminator(), FirstTerminator(trims=True), EndOfTextStop())


def text(
    decided: dict[int, int], length: int = 6, literals: dict[int, int] | None = None
) -> Canvas:
    made = Canvas([END, 1], length, MASK, literals=literals)
    made.window = range(2, made.length)
    for slot, token in decided.items():
        made.commit([slot + 2], [token])
    return made


def ended(stop: FirstTerminator | EndOfTextStop, canvas: Canvas, p_end: float = 0.0) -> int | None:
    """The slot of the answer at which it is over."""
    stats, _ = seen(canvas, [0.5] * (canvas.length - 2))
    everywhere = np.ones(len(stats.slots), dtype=np.bool_)
    stats = replace(stats, p_end=np.full(len(stats.slots), p_end), open=everywhere)
    end = stop.begin(canvas, TRAITS).ended(canvas, stats)
    return None if end is None else end - 2


@pytest.mark.parametrize("stop", STOPS)
def test_an_end_with_gaps_before_it_ends_nothing(stop: FirstTerminator | EndOfTextStop) -> None:
    assert ended(stop, text({0: 1, 2: END})) is None
    assert ended(stop, text({0: 1, 1: 1})) is None


@pytest.mark.parametrize("stop", STOPS)
def test_an_end_with_all_before_it_decided_ends_the_text(
    stop: FirstTerminator | EndOfTextStop,
) -> None:
    assert ended(stop, text({0: 1, 1: 1, 2: END})) == 2
    assert ended(stop, text({0: END})) == 0
    assert ended(stop, text({0: 1, 1: END, 2: 1, 3: END})) == 1
    assert ended(stop, text({0: 1, 1: END, 4: END})) == 1


@pytest.mark.parametrize("stop", STOPS)
def test_ends_in_the_prompt_or_in_literals_end_nothing(
    stop: FirstTerminator | EndOfTextStop,
) -> None:
    assert ended(stop, text({0: 1, 1: 1}, literals={2: END})) is None
    assert ended(stop, text({0: 1, 1: END}, literals={2: END})) == 1


def test_all_terminators_count() -> None:
    stop = FirstTerminator().begin(text({}), ModelTraits(10, MASK, frozenset({3, END})))
    canvas = text({0: 1, 1: 3, 2: END})

    assert stop.ended(canvas, seen(canvas, [1.0])[0]) == 3


def test_trimming_drops_what_is_behind_an_end() -> None:
    canvas = text({3: END})
    assert ended(FirstTerminator(trims=True), canvas) is None
    assert canvas.length == 6
    assert canvas.open.tolist() == [2, 3, 4]
    kept = text({3: END}, literals={5: 7})
    ended(FirstTerminator(trims=True), kept)
    assert kept.length == 8  # literals are not dropped
    ended(FirstTerminator(), kept)
    assert kept.length == 8


@pytest.mark.parametrize(("p_end", "length"), [(0.95, 6), (0.9, 6), (0.85, 8)])
def test_a_sure_end_that_was_written_cuts_the_rest(p_end: float, length: int) -> None:
    canvas = text({3: END})
    assert ended(EndOfTextStop(0.9), canvas, p_end) is None
    assert canvas.length == length


def test_a_predicted_end_that_was_not_written_cuts_nothing() -> None:
    canvas = text({3: 1})
    assert ended(EndOfTextStop(0.9), canvas, p_end=1.0) is None
    assert canvas.length == 8
    with pytest.raises(ValueError, match="sure at 0"):
        EndOfTextStop(0.0)


@pytest.mark.parametrize("stop", STOPS)
@given(seed=st.integers(0, 10**6), end=st.integers(0, 7), blocks=st.integers(0, 4))
def test_what_is_kept_is_what_stands_before_the_first_end(
    stop: FirstTerminator | EndOfTextStop, seed: int, end: int, blocks: int
) -> None:
    """Written in any order, by a model that is sure where the end is."""
    toy = Toy(lambda slot: END if slot - 2 >= end else slot % 8)
    plugs = replace(
        PLUGS, commit=FixedPolicy(score="random"), schedule=FixedBlocks(blocks), stop=stop
    )
    row = denoise_text(toy, Canvas([1, 1], 8, MASK), plugs, CounterRng(seed))

    assert row.kept.tolist() == [slot % 8 for slot in range(2, 2 + end)]
    assert row.finish == "stop"
    assert row.counters.discarded >= 1


def test_an_edit_takes_an_end_back() -> None:
    """The end is written first, and is another token once the block is full."""

    def token(slot: int) -> int:
        return END if slot == 2 and len(toy.passes) == 1 else slot % 8

    toy = Toy()
    toy.token = token
    plugs = replace(PLUGS, commit=TokenEditPolicy(0.0, 0.5))
    row = denoise_text(toy, Canvas([1], 4, MASK), plugs, CounterRng(0))

    assert row.kept.tolist() == [1, 2, 3, 4]
    assert row.finish == "length"
    assert row.counters.edits == 1
    toy.passes.clear()
    row = denoise_text(
        toy, Canvas([1], 4, MASK), replace(plugs, commit=TokenEditPolicy(0.0, None)), CounterRng(0)
    )
    assert row.kept.tolist() == [1]
    assert row.finish == "stop"


@given(seed=st.integers(0, 10**6))
def test_no_end_is_ever_in_what_is_kept(seed: int) -> None:
    for stop in STOPS:
        row = DenoisingRow(
            Canvas([1, 2], 7, MASK), replace(PLUGS, stop=stop), TRAITS, CounterRng(seed), GREEDY
        )
        denoise_all([row], Hostile(seed))
        assert END not in row.kept
