"""Continuous batching: every step reads new tokens of all rows in one forward pass.

Requests join and leave between steps. Single-threaded; knows nothing of event loops.
"""

from __future__ import annotations

import heapq
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weft.core.errors import WeftError
from weft.serving.local.failure import converted
from weft.serving.local.intake import Intake
from weft.serving.local.network import Network
from weft.serving.local.options import LocalOptions
from weft.serving.local.packing import Span
from weft.serving.local.row import Row
from weft.serving.local.slots import Slots, common_prefix
from weft.serving.local.ticket import Ticket
from weft.serving.local.vocabulary import Vocabulary

_WORTH_WAITING_TOKENS = 32


class Batcher:
    """Runs the rows of one model. `rows` are running, oldest first; the others wait."""

    def __init__(
        self, network: Network, vocabulary: Vocabulary, options: LocalOptions, name: str
    ) -> None:
        self.forwards = 0
        self.rows: list[Row] = []
        self._network = network
        self._options = options
        self._name = name
        self._intake = Intake(vocabulary, network.habits, network.context_tokens, options)
        self._slots = Slots(options.max_batch)
        self._waiting: list[tuple[int, int, Row]] = []
        self._order = count()

    @classmethod
    def load(cls, path: Path, options: LocalOptions) -> Batcher:
        """Weights and tokenizer of a folder. Raises: what they raise."""
        network = Network.load(path, options)
        vocabulary = Vocabulary.load(path, network.vocabulary_size, network.habits.end_ids)
        return cls(network, vocabulary, options, path.name)

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing waits."""
        return not self.rows and not self._waiting

    def add(self, ticket: Ticket) -> None:
        """Queue a request by its priority, then by arrival; a bad one gets its error at once."""
        try:
            row = self._intake.row(ticket)
        except BaseException as error:  # noqa: BLE001 - the libraries panic outside Exception
            ticket.put(converted("the request cannot be prepared", error))
        else:
            heapq.heappush(self._waiting, (-ticket.request.priority, next(self._order), row))

    def step(self) -> None:
        """Let cancelled rows go, take waiting ones in, read one batch, choose one token each."""
        self._drop_cancelled()
        self._admit()
        spans = self._plan()
        if spans:
            self._read(spans)

    def abort(self, error: WeftError) -> None:
        """End everything that runs or waits with `error`, and forget what was cached."""
        for row in (*self.rows, *(entry[-1] for entry in self._waiting)):
            row.ticket.put(error)
        self.rows.clear()
        self._waiting.clear()
        self._slots = Slots(self._options.max_batch)
        self._network.reset()

    def _drop_cancelled(self) -> None:
        for row in self.rows:
            row.done = row.ticket.cancelled
        self._retire()
        if any(row.ticket.cancelled for *_, row in self._waiting):
            self._waiting = [entry for entry in self._waiting if not entry[-1].ticket.cancelled]
            heapq.heapify(self._waiting)

    def _retire(self) -> None:
        for row in self.rows:
            if row.done and row.slot is not None:
                row.slot.busy = False
        self.rows = [row for row in self.rows if not row.done]

    def _admit(self) -> None:
        postponed = []
        while self._waiting and self._slots.free:
            row = self._waiting[0][-1]
            if not self._fits(row):
                break
            entry = heapq.heappop(self._waiting)
            if self._prefix_is_coming(row):
                postponed.append(entry)
            else:
                self._start(row)
        for entry in postponed:
            heapq.heappush(self._waiting, entry)

    def _fits(self, row: Row) -> bool:
        longest = max([row.most_tokens, *(other.most_tokens for other in self.rows)])
        return not self.rows or longest * (len(self.rows) + 1) <= self._options.cache_tokens

    def _prefix_is_coming(self, row: Row) -> bool:
        """Whether a running row is still reading a prefix that this row could soon take over."""
        worth = self._slots.reusable(row.tokens) + _WORTH_WAITING_TOKENS
        for other in self.rows:
            shared = min(common_prefix(row.tokens, other.tokens), len(row.tokens) - 1)
            if shared >= worth and other.slot is not None and len(other.slot.tokens) < shared:
                return True
        return False

    def _start(self, row: Row) -> None:
        claim = self._slots.claim(row.tokens)
        if claim.source is not claim.slot:
            self._network.copy_prefix(claim.source.number, claim.slot.number, claim.reused)
        row.slot = claim.slot
        row.reused = claim.reused
        self.rows.append(row)

    def _plan(self) -> list[Span]:
        """One span for every row that writes, and prompts in order as far as the step allows."""
        spans = []
        budget = self._options.prefill_tokens
        for row in self.rows:
            unread = row.unread
            if len(unread) > 1:
                part = unread[:budget]
                budget -= len(part)
            else:
                part = unread
            if part:
                assert row.slot is not None
                start = len(row.slot.tokens)
                columns = range(start, start + len(part))
                spans.append(Span(row.slot.number, columns, part, len(part) == len(unread)))
        return spans

    def _read(self, spans: list[Span]) -> None:
        logits = self._network.forward(spans)
        self.forwards += 1
        by_slot = {span.slot: span for span in spans}
        for row in self.rows:
            assert row.slot is not None
            span = by_slot.get(row.slot.number)
            if span is None:
                continue
            row.slot.tokens.extend(span.tokens)
            row.forwards += 1
            if span.wants_logits:
                self._advance(row, logits[span.slot])
        self._retire()

    def _advance(self, row: Row, logits: NDArray[np.float32]) -> None:
        try:
            row.advance(logits, self._name)
        except BaseException as error:  # noqa: BLE001 - one row's failure is not its neighbours'
            row.done = True
            row.ticket.put(converted("the answer cannot be continued", error))
