"""A network without weights: its logits are drawn from what a token truly sees in its slot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tests.decoding.speculative.toy import WORDS
from weft.decoding.network.logit_rows import LogitRows
from weft.decoding.network.network import SpanOutput
from weft.decoding.network.packing import Span
from weft.decoding.network.visibility import TreeMask


class Paper:
    """Remembers which token stands in every column, so that a stale one changes what follows.

    `noise` 0 agrees with `ToyTarget` in everything; more of it agrees less often.
    """

    def __init__(
        self, noise: float = 0.0, vocabulary: int = WORDS, context_tokens: int = 4096
    ) -> None:
        self.vocabulary_size = vocabulary
        self.context_tokens = context_tokens
        self.passes: list[list[Span]] = []
        self.fails_at: int | None = None
        self._noise = noise
        self._slots: dict[int, dict[int, int]] = {}

    def forward(self, spans: Sequence[Span]) -> dict[int, SpanOutput]:
        if self.fails_at is not None and len(self.passes) >= self.fails_at:
            raise RuntimeError("the paper is torn")
        self.passes.append(list(spans))
        assert len({span.slot for span in spans}) == len(spans)
        return {span.slot: SpanOutput(LogitRows.of(self._read(span)), {}) for span in spans}

    def held(self, slot: int, columns: int) -> list[int]:
        """What stands in the first columns of a slot."""
        return [self._slots[slot][column] for column in range(columns)]

    def _read(self, span: Span) -> NDArray[np.float32]:
        columns = self._slots.setdefault(span.slot, {})
        assert len(span.columns) == len(span.tokens)
        assert all(0 <= token < self.vocabulary_size for token in span.tokens)
        columns.update(zip(span.columns, span.tokens, strict=True))
        wanting = list(span.columns)[len(span.columns) - span.wants_logits :]
        rows = [self.logits(self._seen(span, column)) for column in wanting]
        return np.array(rows, np.float32).reshape(-1, self.vocabulary_size)

    def logits(self, text: Sequence[int]) -> NDArray[np.float64]:
        own = np.random.default_rng([*text, 11]).normal(size=WORDS) * 2
        off = np.random.default_rng([*text, 12]).normal(size=WORDS) * self._noise
        return np.concatenate([own + off, np.full(self.vocabulary_size - WORDS, 9.0)])

    def _seen(self, span: Span, column: int) -> list[int]:
        columns = self._slots[span.slot]
        if not isinstance(span.placement, TreeMask):
            return [columns[before] for before in range(column + 1)]
        seen = span.placement.visible([column], column + 1)[0]
        return [columns[before] for before in range(column + 1) if seen[before]]
