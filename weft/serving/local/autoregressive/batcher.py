"""Continuous batching: every step reads new tokens of all rows in one forward pass.

Requests join and leave between steps. Single-threaded; uses no event loop.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

import torch

from weft.core.errors import WeftError
from weft.decoding.adapters.folder import FindModel, adapter_folder
from weft.decoding.device_sampling import TokenDraws, choose_tokens, samples_on
from weft.decoding.network.network import Network, SpanOutput
from weft.decoding.network.packing import Span
from weft.decoding.network.visibility import Placement
from weft.decoding.speculative.acceptance import AcceptedPath
from weft.decoding.speculative.draft import DraftProposal
from weft.decoding.speculative.drafter import TargetOutputs
from weft.decoding.speculative.speculation import NO_DRAFT
from weft.decoding.speculative.target import draft_span, target_outputs
from weft.serving.local.autoregressive.decoders import SpeculativeDecoders
from weft.serving.local.autoregressive.intake import Intake
from weft.serving.local.autoregressive.row import AnswerRow
from weft.serving.local.autoregressive.slots import CacheSlots, common_prefix
from weft.serving.local.autoregressive.worker_group import WorkerGroup
from weft.serving.local.options import LocalOptions
from weft.serving.local.ticket import Ticket, converted
from weft.serving.local.vocabulary import Vocabulary

_MIN_SHARED_TOKENS = 32  # a shorter common prefix is not worth waiting for


class Batcher:
    """Runs the rows of one model. `rows` are running, oldest first; the others wait."""

    def __init__(
        self, network: Network, vocabulary: Vocabulary, options: LocalOptions, name: str
    ) -> None:
        self.forwards = 0
        self.rows: list[AnswerRow] = []
        self._network = network
        self._options = options
        self._name = name
        self._drafting = SpeculativeDecoders(network, options.decode)
        self._intake = Intake(
            vocabulary,
            network.generation,
            network.context_tokens,
            options,
            self._drafting.speculation,
        )
        self._slots = CacheSlots(options.max_batch)
        self._waiting: list[tuple[int, int, tuple[AnswerRow, ...]]] = []
        self._groups: dict[AnswerRow, WorkerGroup] = {}
        self._order = count()
        self._drafts: dict[AnswerRow, DraftProposal] = {}
        self._samples_there = samples_on(network.device)

    @classmethod
    def load(cls, path: Path, options: LocalOptions, find: FindModel | None = None) -> Batcher:
        """Load weights and tokenizer of a folder, of an adapter's base those that `find` locates.

        Raises: their errors.
        """
        network = Network.load(path, options, find=find)
        adapter = adapter_folder(path, find)
        vocabulary = Vocabulary.load(
            path if adapter is None else adapter.base,
            network.vocabulary_size,
            network.generation.end_ids,
            options.chat_template_kwargs,
        )
        return cls(network, vocabulary, options, path.name)

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits."""
        return not self.rows and not self._waiting

    def add(self, *tickets: Ticket) -> None:
        """Queue a request, or the workers of a group in order, by priority, then by arrival.

        An invalid one gets its error at once, and so does the rest of its group.
        """
        try:
            rows = self._rows(tickets)
        except BaseException as error:  # noqa: BLE001 - the libraries panic outside Exception
            for ticket in tickets:
                ticket.put(converted("the request cannot be prepared", error))
        else:
            priority = max(ticket.request.priority for ticket in tickets)
            heapq.heappush(self._waiting, (-priority, next(self._order), rows))

    def step(self) -> None:
        """Drop cancelled rows, admit waiting ones, read one batch, choose the next tokens."""
        self._drop_cancelled()
        self._admit()
        spans = self._plan()
        if spans:
            self._read(spans)

    def abort(self, error: WeftError) -> None:
        """End everything that runs or waits with `error`, and clear the cache."""
        for row in (*self.rows, *(row for *_, rows in self._waiting for row in rows)):
            row.end()
            row.ticket.put(error)
        self.rows.clear()
        self._waiting.clear()
        self._groups.clear()
        self._slots = CacheSlots(self._options.max_batch)
        self._network.reset()

    def close(self) -> None:
        """Close the drafters. Nothing may run."""
        self._drafting.close()

    def _rows(self, tickets: Sequence[Ticket]) -> tuple[AnswerRow, ...]:
        attention = tickets[0].request.attention
        if attention is None:
            return tuple(self._intake.row(ticket) for ticket in tickets)
        self._network.rotary()  # refuses a model without rotary positions
        group = WorkerGroup(
            self._intake.workers(tickets), attention.layout, self._options.max_batch
        )
        self._groups.update(dict.fromkeys(group.rows, group))
        return tuple(group.rows)

    def _drop_cancelled(self) -> None:
        for row in self.rows:
            if row.ticket.cancelled:
                self._remove(row)
        self._retire()
        if any(row.ticket.cancelled for *_, rows in self._waiting for row in rows):
            self._drop_waiting()

    def _drop_waiting(self) -> None:
        left = []
        for priority, order, rows in self._waiting:
            for row in rows:
                if row.ticket.cancelled and row in self._groups:
                    self._groups.pop(row).remove(row)
                if row.ticket.cancelled:
                    row.end()
            staying = tuple(row for row in rows if not row.ticket.cancelled)
            if staying:
                left.append((priority, order, staying))
        self._waiting = left
        heapq.heapify(self._waiting)

    def _remove(self, row: AnswerRow) -> None:
        """End a cancelled or failed row."""
        row.done = True
        if row in self._groups:
            self._groups[row].remove(row)

    def _retire(self) -> None:
        """Release the rows that are done; a group's slots when all of its rows are."""
        done = [row for row in self.rows if row.done]
        self.rows = [row for row in self.rows if not row.done]
        for row in done:
            row.end()
            group = self._groups.pop(row, None)
            if group is None:
                assert row.slot is not None
                row.slot.free()
            elif group not in self._groups.values():
                group.release()

    def _admit(self) -> None:
        postponed = []
        while self._waiting:
            rows = self._waiting[0][-1]
            if not self._fits(rows):
                break
            entry = heapq.heappop(self._waiting)
            if len(rows) == 1 and self._prefix_is_coming(rows[0]):
                postponed.append(entry)
            else:
                self._start(rows)
        for entry in postponed:
            heapq.heappush(self._waiting, entry)

    def _fits(self, rows: tuple[AnswerRow, ...]) -> bool:
        group = self._groups.get(rows[0])
        slots = 1 if group is None else group.slots
        longest = rows[0].most_tokens if group is None else group.most_tokens
        if slots > self._slots.free:
            return False
        longest = max([longest, *(row.most_tokens for row in self.rows)])
        return not self.rows or longest * (len(self.rows) + slots) <= self._options.cache_tokens

    def _prefix_is_coming(self, row: AnswerRow) -> bool:
        """Whether a running row is still reading a prefix that this row could soon reuse."""
        if row.placement is not None or row in self._groups:
            return False
        worth = self._slots.reusable(row.tokens) + _MIN_SHARED_TOKENS
        for other in self.rows:
            if other.placement is not None or other in self._groups:
                continue
            shared = min(common_prefix(row.tokens, other.tokens), len(row.tokens) - 1)
            if shared >= worth and other.slot is not None and len(other.slot.tokens) < shared:
                return True
        return False

    def _start(self, rows: tuple[AnswerRow, ...]) -> None:
        group = self._groups.get(rows[0])
        if group is not None:
            group.start(self._slots, self._network)
        elif rows[0].placement is not None:
            self._splice(rows[0], rows[0].placement)
        else:
            self._take_prefix(rows[0])
        self.rows.extend(rows)

    def _take_prefix(self, row: AnswerRow) -> None:
        claim = self._slots.claim(row.tokens)
        if claim.source is not claim.slot:
            self._network.copy_prefix(claim.source.number, claim.slot.number, claim.reused)
        row.slot = claim.slot
        row.reused = claim.reused
        if self._network.reads_prompts_apart:
            row.slot.prompt = row.prompt_tokens

    def _splice(self, row: AnswerRow, placement: Placement) -> None:
        """Copy the row's tokens that any slot has; the last one is read for its logits."""
        names = placement.names(row.tokens[:-1])
        cached = self._slots.named()
        slot = row.slot = self._slots.claim_empty()
        found = {column: cached[name] for column, name in enumerate(names) if name in cached}
        if found:
            self._network.splice(list(found.values()), slot.number, list(found))
        slot.placement, slot.names = placement, names
        if self._network.reads_prompts_apart:
            slot.prompt = 0  # the copied tokens may be those of an answer
        slot.tokens = row.tokens[:-1]
        slot.missing = [column for column in range(len(names)) if column not in found]
        row.reused = len(found)

    def _plan(self) -> list[Span]:
        """One span for every row that writes, and prompts in order as far as the step allows."""
        spans = []
        budget = self._options.prefill_tokens
        self._drafts = self._drafting.drafts(row for row in self.rows if self._may_draft(row))
        for row in self.rows:
            if row in self._groups:
                continue
            assert row.slot is not None
            unread = row.slot.unread(len(row.tokens))
            part = unread
            if len(unread) > 1:
                part = unread[:budget]
                budget -= len(part)
            if part:
                spans.append(self._span(row, part, whole=len(part) == len(unread)))
        for group in dict.fromkeys(self._groups[row] for row in self.rows if row in self._groups):
            spans.extend(group.plan(budget, self._network))
        return spans

    def _may_draft(self, row: AnswerRow) -> bool:
        """Whether the next pass reads all tokens of the row, so that a draft can follow."""
        if not row.writing or row.slot is None or row in self._groups:
            return False
        return len(row.slot.unread(len(row.tokens))) <= self._options.prefill_tokens

    def _span(self, row: AnswerRow, part: Sequence[int], *, whole: bool) -> Span:
        assert row.slot is not None
        tokens = [row.tokens[column] for column in part]
        taps = row.speculation.taps if row.speculation is not None else ()
        draft = self._drafts.get(row, NO_DRAFT)
        if not whole or not (len(draft.tree) or len(draft.aux)):
            prompt = part[-1] < row.prompt_tokens
            return Span(
                row.slot.number, part, tokens, int(whole), row.placement, taps=taps, prompt=prompt
            )
        return draft_span(draft, row.slot.number, part, tokens, row.placement, taps)

    def _read(self, spans: list[Span]) -> None:
        outputs = self._network.forward(spans)
        self.forwards += 1
        by_slot = {span.slot: span for span in spans}
        chosen = self._chosen(by_slot, outputs) if self._samples_there else {}
        for row in self.rows:
            assert row.slot is not None
            span = by_slot.get(row.slot.number)
            if span is None:
                continue
            row.forwards += 1
            if span.wants_logits:
                self._continue(row, span, outputs[span.slot], chosen.get(row))
            else:
                row.slot.read(span.columns, span.tokens)
                row.see(TargetOutputs(tuple(span.tokens), outputs[span.slot].hidden))
        for group in dict.fromkeys(self._groups.values()):
            group.settle(self._network)
        self._retire()

    def _chosen(
        self, spans: Mapping[int, Span], outputs: Mapping[int, SpanOutput]
    ) -> dict[AnswerRow, list[int]]:
        """The tokens that the device chooses, of all rows that leave the choice to it."""
        draws: dict[AnswerRow, TokenDraws] = {}
        scores = []
        for row in self.rows:
            assert row.slot is not None
            span = spans.get(row.slot.number)
            draw = row.draws(self._drafts.get(row, NO_DRAFT)) if span else None
            if span is not None and span.wants_logits and draw is not None:
                draws[row] = draw
                scores.append(outputs[span.slot].rows.part(0, len(draw.numbers)).scores)
        if not draws:
            return {}
        with torch.inference_mode():
            chosen = choose_tokens(torch.cat(scores), list(draws.values()))
        return dict(zip(draws, chosen, strict=True))

    def _continue(
        self, row: AnswerRow, span: Span, output: SpanOutput, chosen: Sequence[int] | None
    ) -> None:
        """Choose the row's next tokens; the accepted path of its draft stays in its slot."""
        assert row.slot is not None
        draft = self._drafts.get(row, NO_DRAFT)
        line = len(span.tokens) - len(draft.tree) - len(draft.aux)
        row.slot.read(span.columns[:line], span.tokens[:line])
        walk = self._advance(row, span.tokens[:line], draft, output, chosen)
        if walk is not None and walk.path:
            first = span.columns[line - 1] + 1
            self._network.keep(row.slot.number, first, walk.path)
            path = [draft.tree.tokens[node] for node in walk.path]
            row.slot.read(range(first, first + len(path)), path)

    def _advance(
        self,
        row: AnswerRow,
        line: Sequence[int],
        draft: DraftProposal,
        output: SpanOutput,
        chosen: Sequence[int] | None,
    ) -> AcceptedPath | None:
        logits = output.rows.part(0, 1 + len(draft.tree))
        try:
            return row.advance(
                logits,
                draft,
                lambda walk: target_outputs(output, draft, walk, line),
                self._name,
                chosen,
            )
        except BaseException as error:  # noqa: BLE001 - the error of one row ends only that row
            self._remove(row)
            row.ticket.put(converted("the answer cannot be continued", error))
            return None
