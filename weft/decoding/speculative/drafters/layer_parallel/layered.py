"""The pass of a draft model over ranks: in order, or with groups of attentions at once.

Every rank runs this same code, and comes to the same tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from weft.decoding.network.packing import Span, Step, pack
from weft.decoding.speculative.drafters.layer_parallel.shard import Angles, Shard, own_ids
from weft.decoding.speculative.drafters.layer_parallel.wire import Wire

PIECE_TOKENS = 256  # of a prompt that are read at once, so that masks stay small


@dataclass(frozen=True, slots=True)
class Job:
    """Draft `most` tokens after `tokens`, which are committed and go to a slot from column `first`.

    Columns before hold what was read in order; what was drafted after them is written over.
    """

    slot: int
    first: int
    tokens: tuple[int, ...]
    most: int


class Layered:
    """A draft model of which the ranks `shards` live here. `groups`: its layers, in order.

    `forwards` counts its passes, each over all rows that drafted.
    """

    def __init__(
        self, shards: Sequence[Shard], wire: Wire, groups: Sequence[range], threads: int
    ) -> None:
        self._shards = shards
        self._wire = wire
        self._groups = tuple(groups)
        self._alone = tuple(range(n, n + 1) for group in groups for n in group)
        self._threads = threads
        self.forwards = 0

    def draft(self, jobs: Sequence[Job]) -> list[list[int]]:
        """The tokens of each job. Committed tokens are read in exact order, drafted ones in groups.

        That is the calibration: keys and values of what stays are never the rough ones.
        """
        if torch.get_num_threads() != self._threads:
            torch.set_num_threads(self._threads)
        with torch.inference_mode():
            drafts = {slot: [token] for slot, token in self._committed(jobs).items()}
            for depth in range(1, max(job.most for job in jobs)):
                live = [job for job in jobs if depth < job.most]
                spans = [
                    Span(job.slot, (_end(job) + depth - 1,), (drafts[job.slot][-1],), 1)
                    for job in live
                ]
                for slot, token in self._read(spans, self._groups).items():
                    drafts[slot].append(token)
        return [drafts[job.slot] for job in jobs]

    def close(self) -> None:
        """Hang up on the other ranks. Harmless when repeated."""
        self._wire.close()

    def _committed(self, jobs: Sequence[Job]) -> dict[int, int]:
        last = []
        for job in jobs:
            begin = 0
            while len(job.tokens) - begin > PIECE_TOKENS:
                self._read([_span(job, begin, begin + PIECE_TOKENS, 0)], self._alone)
                begin += PIECE_TOKENS
            last.append(_span(job, begin, len(job.tokens), 1))
        return self._read(last, self._alone)

    def _read(self, spans: Sequence[Span], groups: Sequence[range]) -> dict[int, int]:
        """The likeliest next token by slot, of the spans that want one."""
        self.forwards += 1
        here = self._shards[0]
        for shard in self._shards:
            shard.reserve(1 + max(span.slot for span in spans), max(span.end for span in spans))
        step = pack(
            spans, queries_per_key=here.queries_per_key, dtype=here.dtype, device=here.device
        )
        hidden, angles = here.embed(step)
        for group in groups:
            for layer, attended in zip(
                group, self._attend(group, hidden, angles, step), strict=True
            ):
                hidden = hidden + attended
                hidden = hidden + self._feed(layer, hidden)
        if not len(step.wanted):
            return {}
        wanted = hidden[step.wanted]
        ids = own_ids(self._wire.gather([shard.best(wanted) for shard in self._shards]))
        return dict(zip((s.slot for s in step.spans if s.wants_logits), ids, strict=True))

    def _attend(
        self, group: range, hidden: torch.Tensor, angles: Angles, step: Step
    ) -> list[torch.Tensor]:
        parts = [shard.attend(group, hidden, angles, step) for shard in self._shards]
        found = self._wire.gather(parts)
        taken = [0] * len(found)
        attended = []
        for layer in group:
            rank = layer % len(found)
            attended.append(found[rank][taken[rank]])
            taken[rank] += 1
        return attended

    def _feed(self, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        first, *others = self._wire.gather([s.feed(layer, hidden) for s in self._shards])
        for other in others:
            first = first + other
        return first


def _span(job: Job, begin: int, end: int, wants_logits: int) -> Span:
    columns = range(job.first + begin, job.first + end)
    return Span(job.slot, columns, job.tokens[begin:end], wants_logits)


def _end(job: Job) -> int:
    return job.first + len(job.tokens)
