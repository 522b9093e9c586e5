from __future__ import annotations

from weft.core.ports import AttentionLayout
from weft.decoding.network.segments import KvSegment, SharedHistory, WorkerBlocks, worker_view

ONE = WorkerBlocks(index=0, slot=3, prompt=10, others=4, own=2, written=5)
TWO = WorkerBlocks(index=1, slot=6, prompt=9, others=4, own=1, written=7)
HISTORY = SharedHistory(slot=8, tokens=20)


def seen(
    layout: AttentionLayout, history: SharedHistory | None = HISTORY
) -> list[tuple[int, int, int, int]]:
    """Slot, first column, tokens, position."""
    stretches = worker_view(ONE, [TWO], layout, history, stride=100)
    return [(s.slot, s.first, s.tokens, s.start) for s in stretches]


def test_contiguous() -> None:
    assert seen("contiguous") == [(3, 0, 14, 0), (6, 14, 7, 14), (3, 14, 7, 21)]


def test_interleaved() -> None:
    assert seen("interleaved") == [(3, 0, 10, 0), (8, 0, 20, 10), (3, 10, 11, 30)]


def test_combined() -> None:
    assert seen("combined") == [
        (3, 0, 10, 0),
        (8, 0, 20, 10),
        (3, 10, 4, 30),
        (6, 14, 7, 34),
        (3, 14, 7, 41),
    ]


def test_slots_leave_everyone_its_own_positions() -> None:
    assert seen("slots") == [(3, 0, 14, 0), (6, 14, 7, 14 + 100 + 1), (3, 14, 7, 14)]
    other = worker_view(TWO, [ONE], "slots", None, stride=100)
    assert other[-1] == KvSegment(6, 13, 8, 113)
    assert other[-2] == KvSegment(3, 16, 5, 13 + 2)


def test_alone_there_is_one_stretch() -> None:
    layouts: tuple[AttentionLayout, ...] = ("contiguous", "interleaved", "combined", "slots")
    for layout in layouts:
        empty = SharedHistory(slot=8, tokens=0)
        assert worker_view(ONE, [], layout, empty, stride=100) == (KvSegment(3, 0, 21, 0),)
