"""A target cut into stages: each some layers, with the keys and values of those only."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import torch

from evals.speculative.pipeinfer.run import Run
from weft.decoding.network.packing import HiddenStateWrite, Span

if TYPE_CHECKING:
    from weft.decoding.network.network import Network


class Stage(Protocol):
    """Reads runs, in the order in which they were sent."""

    def read(self, run: Run, entering: torch.Tensor | None) -> torch.Tensor:
        """What leaves the stage: hidden states [tokens, width], of the last one logits
        [tokens, vocabulary], for a prompt [0, vocabulary]. Nothing enters the first stage.
        """


class NetworkStage:
    """Implements `Stage` over a part of a network, from layer `first` on."""

    def __init__(self, part: Network, first: int, *, last: bool) -> None:
        self._part = part
        self._first = first
        self._end = first + part.layers
        self._last = last

    def read(self, run: Run, entering: torch.Tensor | None) -> torch.Tensor:
        if run.fork is not None:
            source, copied = run.fork
            self._part.copy_prefix(source, run.lane, copied)
        rows = tuple(range(len(run.tokens)))
        writes = (
            () if entering is None else (HiddenStateWrite(self._first, rows, lambda _: entering),)
        )
        wanted = len(rows) if self._last and run.kind != "prompt" else 0
        columns = range(run.first, run.first + len(rows))
        taps = () if self._last else (-self._end,)
        span = Span(run.lane, columns, run.tokens, wanted, writes=writes, taps=taps)
        reading = self._part.forward([span])[run.lane]
        return torch.from_numpy(reading.logits) if self._last else reading.hidden[-self._end]


def cut(network: Network, stages: int) -> Sequence[NetworkStage]:
    """The layers of `network` in `stages` parts as equal as can be; the last has the head.

    Raises: `ValueError` for more stages than layers, or none.
    """
    if not 0 < stages <= network.layers:
        raise ValueError(f"{network.layers} layers in {stages} stages")
    cuts = [round(number * network.layers / stages) for number in range(stages + 1)]
    return [
        NetworkStage(network.part(first, last), first, last=last == network.layers)
        for first, last in pairwise(cuts)
    ]
