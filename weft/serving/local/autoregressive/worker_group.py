"""Rows that attend to one another's tokens as they are written: slots, views, finished steps.

Works on token ids and columns; samples nothing and holds no tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.core.errors import CapabilityError
from weft.core.ports.model import AttentionLayout
from weft.decoding.network.packing import Span
from weft.decoding.network.segments import (
    KvSegment,
    SharedHistory,
    WorkerBlocks,
    shares_steps,
    worker_view,
)
from weft.decoding.worker_steps import WorkerSteps
from weft.serving.local.autoregressive.slots import CacheSlots, Slot, common_prefix

if TYPE_CHECKING:
    from weft.decoding.network.network import Network
    from weft.serving.local.autoregressive.row import AnswerRow

_MIN_SHARED_TOKENS = 32  # a shorter common prefix is not worth waiting for


@dataclass(frozen=True, slots=True, eq=False)
class GroupWorker:
    """One row of a group. `prompt`, `others` and `own` are token counts at the row's beginning.

    They are read as one ordinary sequence, since all blocks are empty then.
    """

    index: int
    row: AnswerRow
    steps: WorkerSteps
    prompt: int
    others: int
    own: int

    @property
    def front(self) -> int:
        """The column where the block begins that the others see."""
        return self.prompt + self.others + self.own

    @property
    def slot(self) -> Slot:
        assert self.row.slot is not None
        return self.row.slot

    @property
    def to_read(self) -> int:
        """The number of tokens it reads before it may write; the last before an answer waits."""
        return min(self.front, len(self.row.tokens) - 1)

    @property
    def ready(self) -> bool:
        return len(self.slot.tokens) >= self.to_read

    def blocks(self, reading: int = 0) -> WorkerBlocks:
        """The blocks of its slot once `reading` more tokens have been read."""
        written = max(len(self.slot.tokens) + reading - self.front, 0)
        return WorkerBlocks(
            self.index, self.slot.number, self.prompt, self.others, self.own, written
        )


class WorkerGroup:
    """The remaining workers of one group, in order; all start in the same step.

    A finished worker stays in the others' views. A removed one leaves them at once, except for its
    finished steps.

    Raises: `CapabilityError` when the batch can never fit the group.
    """

    def __init__(
        self, workers: Sequence[GroupWorker], layout: AttentionLayout, max_batch: int
    ) -> None:
        self._workers = list(workers)
        self._layout = layout
        self._history: Slot | None = None
        self._stride = max(worker.own + worker.row.limits.max_tokens for worker in workers)
        if self.slots > max_batch:
            raise CapabilityError(
                f"a group of {len(workers)} workers in the layout {layout!r} takes {self.slots}"
                f" rows of the batch, which has {max_batch}",
                hint="raise LocalOptions.max_batch, or ask for fewer workers",
            )

    @property
    def rows(self) -> list[AnswerRow]:
        """The rows of the remaining workers."""
        return [worker.row for worker in self._workers]

    @property
    def slots(self) -> int:
        """The number of slots that the group takes."""
        return len(self._workers) + shares_steps(self._layout)

    @property
    def most_tokens(self) -> int:
        """The greatest possible length of one of its slots."""
        written = sum(worker.row.limits.max_tokens for worker in self._workers)
        return max(
            *(worker.row.most_tokens for worker in self._workers),
            written if shares_steps(self._layout) else 0,
        )

    def start(self, slots: CacheSlots, network: Network) -> None:
        """Claim the slots, which must be free, and reuse what they have of the prompts."""
        for worker in self._workers:
            claim = slots.claim(worker.row.tokens[: worker.to_read + 1])
            if claim.source is not claim.slot:
                network.copy_prefix(claim.source.number, claim.slot.number, claim.reused)
            worker.row.slot, worker.row.reused = claim.slot, claim.reused
            claim.slot.front = worker.front
            if network.reads_prompts_apart:
                claim.slot.prompt = worker.to_read
        if shares_steps(self._layout):
            self._history = slots.claim_empty()
            self._history.front = 0

    def plan(self, budget: int, network: Network) -> list[Span]:
        """The spans to read next: at most `budget` tokens of prompts, then of all writers."""
        writing = [worker for worker in self._workers if not worker.row.done]
        if all(worker.ready for worker in writing):
            return self._write(writing)
        spans = []
        for worker in writing:
            shared = self._shared_with_first(worker)
            first = self._workers[0].slot
            if shared and len(first.tokens) < shared:
                continue  # the first worker will soon have it
            if shared:
                self._take_over(worker, shared, network)
            count = len(worker.slot.tokens)
            part = worker.row.tokens[count : min(worker.to_read, count + budget)]
            budget -= len(part)
            if part:
                columns = range(count, count + len(part))
                spans.append(
                    Span(worker.slot.number, columns, part, wants_logits=False, prompt=True)
                )
        return spans

    def settle(self, network: Network) -> None:
        """After a forward pass, move finished and read steps to the history.

        Also the tokens of a worker that is done.
        """
        if self._history is None:
            return
        for worker in self._workers:
            for end in worker.steps.ended:
                step = end - worker.slot.moved
                if 0 < step <= worker.blocks().written:
                    self._move(worker, step, self._history, network)
        for worker in self._workers:
            left = worker.blocks().written
            if worker.row.done and left:
                self._move(worker, left, self._history, network)

    def remove(self, row: AnswerRow) -> None:
        """Remove a cancelled or failed worker: its block leaves all views."""
        for worker in self._workers:
            if worker.row is row and row.slot is not None:
                row.slot.free()
        self._workers = [worker for worker in self._workers if worker.row is not row]

    def release(self) -> None:
        """Release the slots: all workers are done."""
        for worker in self._workers:
            worker.slot.free()
        if self._history is not None:
            self._history.free()

    def _shared_with_first(self, worker: GroupWorker) -> int:
        """The number of tokens to reuse from the first worker; 0: not worth waiting."""
        first = self._workers[0]
        if worker is first or first.row.done:
            return 0
        most = min(worker.to_read, first.to_read)
        shared = min(common_prefix(first.row.tokens, worker.row.tokens), most)
        return shared if shared >= len(worker.slot.tokens) + _MIN_SHARED_TOKENS else 0

    def _take_over(self, worker: GroupWorker, shared: int, network: Network) -> None:
        network.copy_prefix(self._workers[0].slot.number, worker.slot.number, shared)
        worker.slot.tokens = worker.row.tokens[:shared]
        worker.row.reused = shared

    def _write(self, writing: Sequence[GroupWorker]) -> list[Span]:
        """The next tokens of all writers; each sees what all of them read in this step."""
        unread = {worker: worker.slot.unread(len(worker.row.tokens)) for worker in writing}
        blocks = {worker: worker.blocks(len(unread.get(worker, ()))) for worker in self._workers}
        slot = self._history
        history = None if slot is None else SharedHistory(slot.number, len(slot.tokens))
        spans = []
        for worker, columns in unread.items():
            others = [blocks[other] for other in self._workers if other is not worker]
            view = worker_view(blocks[worker], others, self._layout, history, self._stride)
            if view == (KvSegment(worker.slot.number, 0, columns[-1] + 1, 0),):
                view = ()  # as an ordinary row
            tokens = [worker.row.tokens[column + worker.slot.moved] for column in columns]
            spans.append(Span(worker.slot.number, columns, tokens, True, view=view))
        return spans

    def _move(self, worker: GroupWorker, step: int, history: Slot, network: Network) -> None:
        """Move the first `step` tokens of the block to the history, and the rest up."""
        slot, front = worker.slot, worker.front
        network.move(slot.number, front, step, history.number, len(history.tokens))
        history.tokens.extend(slot.tokens[front : front + step])
        rest = len(slot.tokens) - front - step
        if rest:
            network.move(slot.number, front + step, rest, slot.number, front)
        del slot.tokens[front : front + step]
        slot.moved += step
