"""Windows: equal blocks, sentences, growing answers, and spans that are explored first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decoding.diffusion.hostile import END, MASK, NOISE, TRAITS
from tests.decoding.diffusion.lists import ORACLE, begun
from tests.decoding.diffusion.policies.pass_statistics import seen
from tests.decoding.diffusion.toy import Toy
from weft.decoding.decoders import parse_decode
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.exact import NoCache
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.catalogue import decoder_config
from weft.decoding.diffusion.denoising import denoise_all, denoise_text
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.language import read_question
from weft.decoding.diffusion.policies.confidence import ThresholdPolicy
from weft.decoding.diffusion.ports import BlockSchedule, DecoderConfig
from weft.decoding.diffusion.schedules import AdaBlock, Daedal, FixedBlocks, SlowFast
from weft.decoding.diffusion.stats import Stats
from weft.decoding.diffusion.stops import FirstTerminator
from weft.decoding.sampling import CounterRng

BLOCKS = ModelTraits(10, MASK, frozenset({END}), attention="block_causal", block=4)


def windows(schedule: BlockSchedule, text: Canvas, traits: ModelTraits = TRAITS) -> list[range]:
    """All windows, each written before the next is asked for."""
    blocks = schedule.begin(text, traits)
    text.window = blocks.first(text)
    found = []
    while text.window:
        found.append(text.window)
        text.commit(text.open, [1] * len(text.open))
        text.window = blocks.following(text, None)
    return found


def test_blocks_are_equal_and_the_last_is_what_is_left() -> None:
    assert windows(FixedBlocks(4), Canvas([1, 2], 9, MASK)) == [
        range(2, 6),
        range(6, 10),
        range(10, 11),
    ]
    assert windows(FixedBlocks(), Canvas([1, 2], 9, MASK)) == [range(2, 11)]
    assert windows(FixedBlocks(4), Canvas([1, 2], 0, MASK)) == []


def test_aligned_blocks_begin_with_the_rest_of_the_prompts() -> None:
    aligned = [range(2, 4), range(4, 8), range(8, 11)]
    assert windows(FixedBlocks(4, aligned=True), Canvas([1, 2], 9, MASK)) == aligned
    assert windows(FixedBlocks(), Canvas([1, 2], 9, MASK), BLOCKS) == aligned
    assert (
        windows(FixedBlocks(3), Canvas([1, 2], 9, MASK), BLOCKS) == aligned
    )  # 3 do not fit into 4
    parts = windows(FixedBlocks(2), Canvas([1], 5, MASK), BLOCKS)
    assert parts == [range(1, 2), range(2, 4), range(4, 6)]


def test_blocks_of_literals_are_passed_over() -> None:
    text = Canvas([1], 8, MASK, literals={0: 1, 1: 1, 2: 1, 5: 1})
    assert windows(FixedBlocks(3), text) == [range(4, 7), range(7, 9)]


def test_a_canvas_that_may_grow_gets_more_blocks() -> None:
    text = Canvas([1], 2, MASK, limit=8)
    assert windows(FixedBlocks(3), text) == [range(1, 3), range(3, 6), range(6, 8)]
    text = Canvas([1], 3, MASK, limit=9)
    assert windows(FixedBlocks(), text, BLOCKS) == [range(1, 4), range(4, 8), range(8, 9)]
    assert windows(FixedBlocks(), Canvas([1], 2, MASK, limit=8)) == [range(1, 3)]
    with pytest.raises(ValueError, match="-1 slots"):
        FixedBlocks(-1)


@given(
    st.integers(0, 6),
    st.booleans(),
    st.integers(1, 7),
    st.integers(0, 20),
    st.sets(st.integers(0, 19)),
    st.integers(0, 30),
)
def test_every_slot_is_written_once(
    size: int, aligned: bool, first: int, length: int, literals: set[int], limit: int
) -> None:
    fixed = {slot: 1 for slot in literals if slot < length}
    text = Canvas([1] * first, length, MASK, literals=fixed, limit=limit)
    found = windows(FixedBlocks(size, aligned), text)

    assert not text.undecided.any()
    assert text.length == (max(limit, first + length) if size else first + length)
    slots = [slot for window in found for slot in window]
    assert slots == sorted(set(slots))
    assert all(len(window) <= (size or text.length) for window in found)


def look(text: Canvas, confidence: list[float], ids: list[int] | None = None) -> Stats:
    return seen(text, confidence, ids=ids)[0]


def test_a_block_ends_behind_the_surest_delimiter() -> None:
    text = Canvas([1], 8, MASK)
    blocks = AdaBlock(frozenset({3, 4}), size=6, sure=0.3).begin(text, TRAITS)
    text.window = blocks.first(text)
    likely = look(text, [0.9, 0.4, 0.9, 0.6, 0.2, 0.9], [1, 3, 1, 4, 3, 1])

    assert text.window == range(1, 7)
    assert blocks.moved(text, likely) == range(1, 5)
    assert blocks.moved(text, look(text, [0.9, 0.2], [1, 3])) == range(1, 7)
    text.step_in_block = 1
    assert blocks.moved(text, likely) == range(1, 7)
    text.window = range(1, 5)
    assert blocks.following(text, None) == range(5, 9)


def ends(text: Canvas, p_end: list[float], confidence: float = 0.9) -> Stats:
    stats = look(text, [confidence] * len(p_end))
    return replace(stats, p_end=np.array(p_end))


def test_an_answer_grows_until_its_end_is_in_sight() -> None:
    text = Canvas([1], 12, MASK)
    blocks = Daedal(start=3, size=4, more=2, tail=2).begin(text, TRAITS)
    text.window = blocks.first(text)
    assert (text.length, text.window) == (4, range(1, 4))

    text.window = blocks.moved(text, ends(text, [0.9, 0.4, 0.4]))
    assert (text.length, text.window) == (6, range(1, 5))
    text.window = blocks.moved(text, ends(text, [0, 0, 0, 0.4, 0.7]))
    assert (text.length, text.window) == (6, range(1, 5))
    text.window = blocks.moved(text, ends(text, [0] * 5))
    assert text.length == 6  # only before anything is written


def test_an_answer_grows_to_its_limit_and_no_further() -> None:
    text = Canvas([1], 5, MASK)
    blocks = Daedal(start=3, size=4, more=4).begin(text, TRAITS)
    text.window = blocks.first(text)
    lengths = []
    for _ in range(3):
        text.window = blocks.moved(text, ends(text, [0.0] * (text.length - 1)))
        lengths.append(text.length)

    assert lengths == [6, 6, 6]
    text.commit(text.open, [1] * 4)
    assert blocks.following(text, None) == range(5, 6)


def test_a_lost_slot_becomes_several() -> None:
    text = Canvas([1], 12, MASK)
    blocks = Daedal(start=4, size=4, more=3, tail=2).begin(text, TRAITS)
    text.window = blocks.first(text)
    blocks.moved(text, ends(text, [1.0] * 4))
    stats = replace(look(text, [0.9, 0.05, 0.08, 0.9]), p_end=np.array([0, 0, 0.5, 0.5]))

    assert blocks.moved(text, stats) == range(1, 5)
    assert text.length == 7
    assert text.undecided.sum() == 6
    ending = replace(stats, p_end=np.array([0, 0, 0.9, 0.9]))
    assert blocks.moved(text, ending) == range(1, 5)
    assert text.length == 7


def test_literals_are_not_moved() -> None:
    text = Canvas([1], 6, MASK, literals={5: 3})
    blocks = Daedal(start=2, size=4, more=3, tail=2).begin(text, TRAITS)
    text.window = blocks.first(text)
    assert text.length == 7
    blocks.moved(text, ends(text, [1.0] * 6))
    blocks.moved(text, ends(text, [0.0] * 6, confidence=0.01))
    assert text.length == 7


def test_exploring_ends_when_what_is_seen_is_steady() -> None:
    text = Canvas([1], 12, MASK)
    blocks = SlowFast(span=8, fair=0.3, most=6).begin(text, TRAITS)
    text.window = blocks.first(text)
    assert text.window == range(1, 9)

    assert blocks.moved(text, look(text, [0.9, 0.4, 0.1, 0.5, 0.1, 0.1, 0.1, 0.1])) == range(1, 9)
    assert blocks.moved(text, look(text, [0.9, 0.4, 0.5, 0.1, 0.1, 0.1, 0.1, 0.5])) == range(1, 9)
    text.window = blocks.moved(text, look(text, [0.9, 0.4, 0.5, 0.1, 0.1, 0.1, 0.5, 0.1]))
    assert text.window == range(1, 8)
    assert blocks.moved(text, look(text, [0.9] * 7)) == range(1, 8)
    text.commit(text.open, [1] * 7)
    assert blocks.following(text, None) == range(8, 13)


def test_exploring_stays_inside_a_models_block() -> None:
    text = Canvas([1], 9, MASK)
    blocks = SlowFast(span=8).begin(text, BLOCKS)
    assert blocks.first(text) == range(1, 4)
    text.window = range(1, 4)
    text.commit(text.open, [1] * 3)
    assert blocks.following(text, None) == range(4, 8)


def test_exploring_ends_after_so_many_passes() -> None:
    text = Canvas([1], 8, MASK)
    blocks = SlowFast(span=8, most=3).begin(text, TRAITS)
    text.window = blocks.first(text)
    reached = [[0.1] * 7 + [0.9], [0.9] + [0.1] * 7, [0.1] * 8]
    found = [blocks.moved(text, look(text, confidence)) for confidence in reached]

    assert found == [range(1, 9), range(1, 9), range(1, 2)]
    with pytest.raises(ValueError, match="no exploring"):
        SlowFast(most=0)


def test_a_daedal_text_is_as_long_as_it_is() -> None:
    """From four slots to the end at the eleventh, with the limit out of sight."""
    toy = Toy(lambda slot: END if slot >= 11 else slot % 8)
    plugs = DecoderConfig(
        ThresholdPolicy(0.9), Daedal(start=4, size=4, more=4, tail=4), NoCache(), FirstTerminator()
    )
    row = denoise_text(toy, Canvas([1], 40, MASK), plugs, CounterRng(0))

    assert row.kept.tolist() == [slot % 8 for slot in range(1, 11)]
    assert row.finish == "stop"
    assert row.canvas.length == 17


def test_open_slots_are_filled_with_noise_where_there_is_no_mask() -> None:
    text = Canvas([1], 1, 0, limit=4)
    windows(FixedBlocks(2), text, NOISE)
    assert text.length == 4


def test_the_delimiters_of_adablock_are_heeded() -> None:
    """As somebody writes them, names among the ids: every item of a list ends a block."""
    names = sorted({*words.ids_of("Tom Adam Mary Eva")})
    question = read_question(words.ids_of("reverse <sep> Tom Adam Mary Eva <sep>"))
    passes = {}
    for text in ("adablock", f"adablock,delimiters={','.join(map(str, names))}"):
        spec = parse_decode(text)
        row = begun(question, decoder_config(spec.method, ORACLE.traits, dict(spec.options)), 0)
        denoise_all([row], ORACLE)
        passes[text] = row.counters.forwards
    plainly, with_items = passes.values()
    assert with_items > plainly
