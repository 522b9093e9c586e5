"""What a worker sees, in which order and at which positions: its own block last.

Layouts are those of `weft.core.ports.model.ConcurrentAttention`. Knows slots and columns of a cache
whose keys stand at the positions of their columns; knows no tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from weft.core.ports.model import Layout


@dataclass(frozen=True, slots=True)
class Stretch:
    """`tokens` neighbouring columns of a slot from `first`; the first stands at `start`."""

    slot: int
    first: int
    tokens: int
    start: int

    @property
    def end(self) -> int:
        """The column after the last."""
        return self.first + self.tokens

    @property
    def shift(self) -> int:
        """What a column's number lacks to its position in the view."""
        return self.start - self.first

    def continued_by(self, other: Stretch) -> bool:
        """Whether `other` goes on in the next column and at the next position."""
        return (other.slot, other.first, other.shift) == (self.slot, self.end, self.shift)


@dataclass(frozen=True, slots=True)
class Blocks:
    """What worker `index` has in its slot, from the left, in tokens."""

    index: int
    slot: int
    prompt: int
    others: int
    own: int
    written: int

    @property
    def front(self) -> int:
        """The column where the block begins that the other workers see."""
        return self.prompt + self.others + self.own


@dataclass(frozen=True, slots=True)
class History:
    """The finished steps of all workers."""

    slot: int
    tokens: int


def shares_steps(layout: Layout) -> bool:
    """Whether finished steps leave their worker's block for a history that all see."""
    return layout in ("interleaved", "combined")


def view(
    worker: Blocks,
    others: Sequence[Blocks],
    layout: Layout,
    history: History | None = None,
    stride: int = 0,
) -> tuple[Stretch, ...]:
    """The stretches that `worker` sees. Its own block, with `own` before it, ends the last one.

    `stride` positions lie between the workers' blocks in the layout `slots`: as many as `own` and
    the block can come to have. Empty stretches are left out; neighbours are one.
    """
    head = [Stretch(worker.slot, 0, worker.prompt, 0)]
    if history is not None and shares_steps(layout):
        head.append(Stretch(history.slot, 0, history.tokens, 0))
    head.append(Stretch(worker.slot, worker.prompt, worker.others, 0))
    seen = [] if layout == "interleaved" else others
    blocks = [Stretch(other.slot, other.front, other.written, 0) for other in seen]
    before = worker.prompt + worker.others
    tail = Stretch(worker.slot, before, worker.own + worker.written, 0)
    if layout != "slots":
        return _joined(_in_a_row([*head, *blocks, tail]))
    base = sum(stretch.tokens for stretch in head)
    placed = [
        replace(block, start=base + other.index * stride + other.own)
        for other, block in zip(seen, blocks, strict=True)
    ]
    own = replace(tail, start=base + worker.index * stride)
    return _joined([*_in_a_row(head), *placed, own])


def _in_a_row(stretches: Sequence[Stretch]) -> list[Stretch]:
    starts = accumulate((stretch.tokens for stretch in stretches), initial=0)
    return [replace(s, start=start) for s, start in zip(stretches, starts, strict=False)]


def _joined(stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
    joined: list[Stretch] = []
    for stretch in stretches:
        if joined and joined[-1].continued_by(stretch):
            joined[-1] = replace(joined[-1], tokens=joined[-1].tokens + stretch.tokens)
        elif stretch.tokens:
            joined.append(stretch)
    return tuple(joined)
