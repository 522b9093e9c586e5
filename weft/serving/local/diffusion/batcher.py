"""Continuous batching of a diffusion model: every step is one forward pass over all rows.

Requests join and leave between steps. Single-threaded; uses no event loop.
"""

from __future__ import annotations

import heapq
from itertools import count
from pathlib import Path

from weft.core.errors import WeftError
from weft.decoding.diffusion.adapter import ModelAdapter
from weft.decoding.diffusion.denoising import denoise
from weft.decoding.diffusion.models import load, tokenizer_folder
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.serving.local.diffusion.intake import DiffusionIntake
from weft.serving.local.diffusion.row import DiffusionRow
from weft.serving.local.options import LocalOptions
from weft.serving.local.ticket import Ticket, converted
from weft.serving.local.vocabulary import Vocabulary
from weft.serving.weights import locate


class DiffusionBatcher:
    """Runs the rows of one model. `rows` are running, oldest first; the others wait."""

    def __init__(
        self, adapter: ModelAdapter, intake: DiffusionIntake, options: LocalOptions
    ) -> None:
        self.forwards = 0
        self.rows: list[DiffusionRow] = []
        self._adapter = adapter
        self._intake = intake
        self._options = options
        self._free = list(range(options.max_batch))  # a heap: low rows first keep the cache small
        self._waiting: list[tuple[int, int, DiffusionRow]] = []
        self._order = count()

    @classmethod
    def load(cls, path: Path, options: LocalOptions) -> DiffusionBatcher:
        """Load weights and tokenizer of a folder. Raises: their errors."""
        model = load(path, options, find=locate)
        traits = model.traits
        vocabulary = Vocabulary.load(
            tokenizer_folder(path, locate),
            traits.vocabulary,
            traits.end_ids,
            options.chat_template_kwargs,
        )
        intake = DiffusionIntake(model, vocabulary, options, path.name)
        return cls(NetworkAdapter(model.network, traits), intake, options)

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits."""
        return not self.rows and not self._waiting

    def add(self, *tickets: Ticket) -> None:
        """Queue requests by priority, then by arrival. An invalid one gets its error at once."""
        for ticket in tickets:
            try:
                row = self._intake.row(ticket)
            except BaseException as error:  # noqa: BLE001 - the libraries panic outside Exception
                ticket.put(converted("the request cannot be prepared", error))
            else:
                entry = (-ticket.request.priority, next(self._order), row)
                heapq.heappush(self._waiting, entry)

    def step(self) -> None:
        """Drop cancelled rows, admit waiting ones, run one forward pass, pass on its results."""
        self._drop_cancelled()
        self._admit()
        self.forwards += denoise(self.rows, self._adapter)
        self._retire()

    def abort(self, error: WeftError) -> None:
        """End everything that runs or waits with `error`, and clear the cache."""
        for row in (*self.rows, *(row for *_, row in self._waiting)):
            row.done = True
            row.ticket.put(error)
        self._waiting.clear()
        self._retire()

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _drop_cancelled(self) -> None:
        for row in self.rows:
            row.done = row.done or row.ticket.cancelled
        self._retire()
        if any(row.ticket.cancelled for *_, row in self._waiting):
            self._waiting = [entry for entry in self._waiting if not entry[-1].ticket.cancelled]
            heapq.heapify(self._waiting)

    def _admit(self) -> None:
        while self._waiting and self._fits(self._waiting[0][-1]):
            row = heapq.heappop(self._waiting)[-1]
            row.start(heapq.heappop(self._free))
            self.rows.append(row)

    def _fits(self, row: DiffusionRow) -> bool:
        longest = max([row.most_tokens, *(other.most_tokens for other in self.rows)])
        fits = longest * (len(self.rows) + 1) <= self._options.cache_tokens
        return bool(self._free) and (fits or not self.rows)

    def _retire(self) -> None:
        """Release the rows that are done."""
        for row in self.rows:
            if row.done and row.number is not None:
                self._adapter.forget(row.number)
                heapq.heappush(self._free, row.number)
        self.rows = [row for row in self.rows if not row.done]
