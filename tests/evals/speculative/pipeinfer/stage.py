"""Stages without weights: each remembers what it read by lane and column, and checks the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from evals.speculative.pipeinfer.run import Run
from tests.decoding.speculative.toy import WORDS


class PaperStage:
    """Reads tokens and logits of `ToyTarget` from what its own columns hold.

    Every stage has columns of its own, as every part of a network has: the last one makes logits
    of what it holds, and every one makes sure that what it holds is what the run assumes.
    """

    def __init__(self, number: int, *, last: bool) -> None:
        self.number = number
        self.read_runs: list[int] = []
        self.lanes: dict[int, dict[int, int]] = {}
        self.fails_at: int | None = None
        self._last = last

    def read(self, run: Run, entering: torch.Tensor | None) -> torch.Tensor:
        assert (entering is None) == (self.number == 0)
        if self.fails_at is not None and len(self.read_runs) >= self.fails_at:
            raise RuntimeError(f"stage {self.number} fell over")
        self.read_runs.append(run.number)
        if run.fork is not None:
            source, columns = run.fork
            self.lanes[run.lane] = {c: self.lanes[source][c] for c in range(columns)}
        tokens = run.tokens if entering is None else [int(token) for token in entering]
        assert tuple(tokens) == run.tokens, "what the stage before gave on is this run's"
        held = self.lanes.setdefault(run.lane, {})
        held.update(zip(range(run.first, run.first + len(tokens)), tokens, strict=True))
        if not self._last:
            return torch.tensor(tokens)
        if run.kind == "prompt":
            return torch.zeros(0, WORDS)
        rows = [self._logits(held, run.first + row) for row in range(len(tokens))]
        return torch.from_numpy(np.array(rows, np.float32))

    def _logits(self, held: dict[int, int], column: int) -> np.ndarray:
        text = [held[before] for before in range(column + 1)]
        return np.random.default_rng([*text, 11]).normal(size=WORDS) * 2


def stages(count: int) -> Sequence[PaperStage]:
    return [PaperStage(number, last=number == count - 1) for number in range(count)]
