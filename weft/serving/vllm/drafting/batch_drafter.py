"""Drafts for every row of a step; a row that fails gets none.

Combines the identity of rows, their texts, texts of other requests, and forced tokens of grammars.
Independent of vLLM and of the channel to other programs.
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
"""Tokens after which the new part of a running answer is shared with its siblings."""
_TEXTS_PER_STEP: Final = 4
"""Most texts from outside added within one step, which they delay."""

Texts = Iterable[tuple[str, Sequence[int]]]
"""Labels with texts that were written under them."""


class BatchDrafter:
    """Drafts of at most `tokens` tokens for answers that end at `longest`. `clock` is in seconds.

    `grammar` returns the forced tokens of a constraint, or None where it cannot follow it. `ended`
    receives the label and the text of every finished answer.
    """

    def __init__(
        self,
        settings: ProposerSettings,
        tokens: int,
        longest: int,
        *,
        grammar: Callable[[Constraint], ForcedTokenSource | None] = lambda _: None,
        ended: Callable[[str, Sequence[int]], None] = lambda _label, _text: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.memory = TextMemory(settings.memory_mib * 2**20 // TOKEN_BYTES)
        self.failures = 0
        self._drafter = SuffixMatchDrafter(settings.depth, settings.least)
        self._tokens = tokens
        self._longest = longest
        self._grammar = grammar
        self._ended = ended
        self._rows = RequestRows(self._new_history)
        self._cost = DraftCost(settings.least)
        self._clock = clock
        self._last_reads: dict[RequestHistory, int] = {}
        self._last_end_s = 0.0

    def propose(
        self,
        sampled: Sequence[Sequence[int]],  # by row: the step's new tokens; none: no draft
        counts: NDArray[np.int32],  # [rows]: current length of each row
        ids: NDArray[np.int32],  # [rows, longest]
        batch: RunningBatch | None = None,
    ) -> list[list[int]]:
        """A draft for each row, possibly empty. Never raises."""
        begun_s = self._clock()
        facts = self._facts(batch, len(sampled))
        reads: dict[RequestHistory, int] = {}
        drafts: list[list[int]] = []
        for row, new in enumerate(sampled):
            try:
                drafts.append(self._row(ids[row, : int(counts[row])], new, facts[row], reads))
            except Exception as raised:  # noqa: BLE001 - drafts never cost an answer
                self._failed(f"row {row} has no draft", raised)
                drafts.append([])
        try:
            self._end_requests(batch)
        except Exception as raised:  # noqa: BLE001 - as above
            self._failed("ended requests are kept", raised)
        self._learn(begun_s, sampled, reads)
        return drafts

    def add_texts(self, texts: Texts) -> None:
        """Add texts from outside, a few per call. Never raises."""
        try:
            for _, (label, text) in zip(range(_TEXTS_PER_STEP), texts, strict=False):
                self.memory.remember(label, text)
        except Exception as raised:  # noqa: BLE001 - drafts never cost an answer
            self._failed("a text from outside is left out", raised)

    def _row(
        self,
        ids: NDArray[np.int32],
        new: Sequence[int],
        facts: RowFacts | None,
        reads: dict[RequestHistory, int],
    ) -> list[int]:
        most = min(self._tokens, self._longest - len(ids) - 1)
        if not new or most < 1:
            return []
        history = self._rows.history_of(ids, len(new), facts, reads)
        reads[history] = 1
        try:
            self._share(history, _PIECE)
            draft = history.draft(most, self.memory.sources(history.label))
            reads[history] += len(draft)
            return draft
        except Exception:
            self._rows.drop(history)
            raise

    def _learn(
        self, begun_s: float, sampled: Sequence[Sequence[int]], reads: dict[RequestHistory, int]
    ) -> None:
        """Observe the time of the last pass, if it read exactly the last drafts and no prompts."""
        last = [self._last_reads[history] for history in reads if history in self._last_reads]
        if last and len(last) == len(sampled):
            self._cost.observe(sum(last), begun_s - self._last_end_s, sum(map(len, sampled)))
        self._drafter.least = self._cost.least()
        self._last_reads, self._last_end_s = reads, self._clock()

    def _new_history(self, facts: RowFacts | None) -> RequestHistory:
        if facts is None:
            return RequestHistory(self._drafter)
        constraint = facts.constraint
        grammar = None if constraint is None else self._grammar(constraint)
        return RequestHistory(self._drafter, facts.label, grammar)

    def _end_requests(self, batch: RunningBatch | None) -> None:
        for history in self._rows.ended(None if batch is None else batch.living()):
            self._share(history, 1)
            self._ended(history.label, history.answer)

    def _share(self, history: RequestHistory, least: int) -> None:
        """Add the new part of an answer to the memory that siblings draft from."""
        self.memory.remember(history.label, history.unshared(least))

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
        """Count a failure, and log it at exponentially growing intervals."""
        self.failures += 1
        if self.failures & (self.failures - 1) == 0:
            LOG.warning(
                "weft drafts on without it: %s: %r (%d so far)", what, raised, self.failures
            )
