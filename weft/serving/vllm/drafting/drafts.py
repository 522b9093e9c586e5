"""Drafts for every row of a step, whatever goes wrong: a row that fails has none.

Puts together who a row is, what it wrote, what others wrote, and what a grammar forces. Knows
neither vLLM nor how other programs reach it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.serving.vllm.drafting.memory import TextMemory
from weft.serving.vllm.drafting.ngram_index import TOKEN_BYTES
from weft.serving.vllm.drafting.requests import (
    Constraint,
    ForcedTokenSource,
    RequestHistory,
    RequestRows,
    RowFacts,
    RunningBatch,
)
from weft.serving.vllm.drafting.settings import ProposerSettings
from weft.serving.vllm.drafting.suffix_drafter import DraftCost, SuffixMatchDrafter

# A child of vLLM's own logger, so that its handlers show the line wherever it runs.
LOG = logging.getLogger("vllm.weft")
_PIECE: Final = 48
"""A running answer is told to its siblings in pieces of so many tokens."""
_TAKEN_IN: Final = 4
"""So many texts from outside are taken in within one step, which waits for it meanwhile."""

Texts = Iterable[tuple[str, Sequence[int]]]
"""Labels, and what was written under them."""


class BatchDrafter:
    """Drafts of at most `tokens` tokens for answers that end at `longest`. `clock` is in seconds.

    `received` gives texts from outside as they come; `grammar` a grammar for a constraint, or None
    where it cannot follow it; `ended` is told what an answer was once it is over.
    """

    def __init__(
        self,
        how: ProposerSettings,
        tokens: int,
        longest: int,
        *,
        grammar: Callable[[Constraint], ForcedTokenSource | None] = lambda _: None,
        ended: Callable[[str, Sequence[int]], None] = lambda _label, _text: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.memory = TextMemory(how.memory_mib * 2**20 // TOKEN_BYTES)
        self.failures = 0
        self._guesser = SuffixMatchDrafter(how.depth, how.least)
        self._tokens = tokens
        self._longest = longest
        self._grammar = grammar
        self._ended = ended
        self._rows = RequestRows(self._line)
        self._price = DraftCost(how.least)
        self._clock = clock
        self._asked: dict[RequestHistory, int] = {}
        self._asked_s = 0.0

    def propose(
        self,
        sampled: Sequence[Sequence[int]],  # by row: what the step added; nothing: no draft
        counts: NDArray[np.int32],  # [rows]: tokens that each row has now
        ids: NDArray[np.int32],  # [rows, longest]
        batch: RunningBatch | None = None,
    ) -> list[list[int]]:
        """A draft for each row, perhaps an empty one. Never raises."""
        begun_s = self._clock()
        facts = self._facts(batch, len(sampled))
        taken: dict[RequestHistory, int] = {}
        drafts: list[list[int]] = []
        for row, new in enumerate(sampled):
            try:
                drafts.append(self._row(ids[row, : int(counts[row])], new, facts[row], taken))
            except Exception as raised:  # noqa: BLE001 - drafts never cost an answer
                self._failed(f"row {row} has no draft", raised)
                drafts.append([])
        try:
            self._tidy(batch)
        except Exception as raised:  # noqa: BLE001 - as above
            self._failed("ended requests are kept", raised)
        self._learn(begun_s, sampled, taken)
        return drafts

    def take_in(self, texts: Texts) -> None:
        """Take in texts from outside, a few at a time. Never raises."""
        try:
            for _, (label, text) in zip(range(_TAKEN_IN), texts, strict=False):
                self.memory.remember(label, text)
        except Exception as raised:  # noqa: BLE001 - drafts never cost an answer
            self._failed("a text from outside is left out", raised)

    def _row(
        self,
        ids: NDArray[np.int32],
        new: Sequence[int],
        facts: RowFacts | None,
        taken: dict[RequestHistory, int],
    ) -> list[int]:
        most = min(self._tokens, self._longest - len(ids) - 1)
        if not new or most < 1:
            return []
        line = self._rows.line(ids, len(new), facts, taken)
        taken[line] = 1
        try:
            self._tell(line, _PIECE)
            draft = line.draft(most, self.memory.sources(line.label))
            taken[line] += len(draft)
            return draft
        except Exception:
            self._rows.drop(line)
            raise

    def _learn(
        self, begun_s: float, sampled: Sequence[Sequence[int]], taken: dict[RequestHistory, int]
    ) -> None:
        """What the pass since the last drafts took, if it read them and no prompts."""
        known = [self._asked[line] for line in taken if line in self._asked]
        if known and len(known) == len(sampled):
            self._price.observe(sum(known), begun_s - self._asked_s, sum(map(len, sampled)))
        self._guesser.least = self._price.least()
        self._asked, self._asked_s = taken, self._clock()

    def _line(self, facts: RowFacts | None) -> RequestHistory:
        if facts is None:
            return RequestHistory(self._guesser)
        constraint = facts.constraint
        grammar = None if constraint is None else self._grammar(constraint)
        return RequestHistory(self._guesser, facts.label, grammar)

    def _tidy(self, batch: RunningBatch | None) -> None:
        for line in self._rows.ended(None if batch is None else batch.living()):
            self._tell(line, 1)
            self._ended(line.label, line.answer)

    def _tell(self, line: RequestHistory, least: int) -> None:
        """Let siblings know what was written since the last time."""
        self.memory.remember(line.label, line.news(least))

    def _facts(self, batch: RunningBatch | None, rows: int) -> Sequence[RowFacts | None]:
        unknown: list[RowFacts | None] = [None] * rows
        if batch is None:
            return unknown
        try:
            facts = batch.rows()
        except Exception as raised:  # noqa: BLE001 - as above
            self._failed("rows are told apart by their tokens", raised)
            return unknown
        return facts if len(facts) == rows else unknown

    def _failed(self, what: str, raised: Exception) -> None:
        """Count it, and say so at first and ever more rarely."""
        self.failures += 1
        if self.failures & (self.failures - 1) == 0:
            LOG.warning(
                "weft drafts on without it: %s: %r (%d so far)", what, raised, self.failures
            )
