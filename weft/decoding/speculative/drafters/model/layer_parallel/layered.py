"""The pass of a draft model over ranks: in order, or with groups of attentions in parallel.

Every rank runs this code, adds in the order of the ranks, and gets the same tokens, bit for bit
those of one process with all ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch.distributed import ProcessGroup

from weft.core.errors import CapabilityError
from weft.decoding.network.layers import load_weights
from weft.decoding.network.packing import PackedBatch, Span, pack
from weft.decoding.speculative.drafters.model.layer_parallel.shard import (
    Angles,
    Shard,
    ShardLayout,
    own_ids,
)


class RankChannel:
    """Connects the local ranks with the others by `group`; None: all ranks are local.

    `gather` raises `RuntimeError` for a lost or slow rank, and after `close`.
    """

    def __init__(self, group: ProcessGroup | None = None) -> None:
        self._group = group
        self._closed = False

    def gather(self, parts: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """`parts` of the local ranks in, those of all ranks out."""
        if self._closed:
            raise RuntimeError("the group is closed")
        if self._group is None:
            return list(parts)
        (part,) = parts
        gathered = [torch.empty_like(part) for _ in range(self._group.size())]
        self._group.allgather([gathered], [part.contiguous()]).wait()
        return gathered

    def close(self) -> None:
        """Disconnect: waiting ranks get an error. May be repeated."""
        self._closed = True
        self._group = None  # its connections go with it


PIECE_TOKENS = 256  # of a prompt that are read at once, so that masks stay small


@dataclass(frozen=True, slots=True)
class DraftJob:
    """Draft `most` tokens after `tokens`, which are committed and read from column `first` on.

    Earlier columns were read in exact order; later ones, of drafts, are overwritten.
    """

    slot: int
    first: int
    tokens: tuple[int, ...]
    most: int


class LayerParallelModel:
    """A draft model whose ranks `shards` are local. `groups`: its layers, in order.

    `forwards` counts passes, each over all rows that drafted.
    """

    def __init__(
        self, shards: Sequence[Shard], wire: RankChannel, groups: Sequence[range], threads: int
    ) -> None:
        self._shards = shards
        self._wire = wire
        self._groups = tuple(groups)
        self._alone = tuple(range(n, n + 1) for group in groups for n in group)
        self._threads = threads
        self.forwards = 0

    def draft(self, jobs: Sequence[DraftJob]) -> list[list[int]]:
        """The tokens of each job. Committed tokens are read in exact order, drafted ones in groups.

        So keys and values of committed tokens are never approximate.
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
        """Disconnect from the other ranks. May be repeated."""
        self._wire.close()

    def _committed(self, jobs: Sequence[DraftJob]) -> dict[int, int]:
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
        self, group: range, hidden: torch.Tensor, angles: Angles, step: PackedBatch
    ) -> list[torch.Tensor]:
        parts = [shard.attend(group, hidden, angles, step) for shard in self._shards]
        parts = self._wire.gather(parts)
        taken = [0] * len(parts)
        attended = []
        for layer in group:
            rank = layer % len(parts)
            attended.append(parts[rank][taken[rank]])
            taken[rank] += 1
        return attended

    def _feed(self, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        first, *others = self._wire.gather([s.feed(layer, hidden) for s in self._shards])
        for other in others:
            first = first + other
        return first


def _span(job: DraftJob, begin: int, end: int, wants_logits: int) -> Span:
    columns = range(job.first + begin, job.first + end)
    return Span(job.slot, columns, job.tokens[begin:end], wants_logits)


def _end(job: DraftJob) -> int:
    return job.first + len(job.tokens)


class DraftTeam(Protocol):
    """The ranks of one draft model."""

    @property
    def context_tokens(self) -> int:
        """The longest sequence it can read."""

    @property
    def forwards(self) -> int:
        """Passes of the draft model so far."""

    def draft(self, jobs: Sequence[DraftJob]) -> list[list[int]]:
        """See `LayerParallelModel.draft`. Raises: `ModelUnavailable` when a rank is gone."""

    def close(self) -> None:
        """Release the ranks. May be repeated."""


@dataclass(frozen=True, slots=True)
class LoadedShards:
    """Ranks that were loaded into this process, and common values."""

    shards: tuple[Shard, ...]
    groups: tuple[range, ...]
    context_tokens: int


def load_shards(layout: ShardLayout, ranks: Sequence[int]) -> LoadedShards:
    """Load the model's folder and keep the parts of `ranks`.

    Raises: `CapabilityError` for another kind of model, fewer layers or another vocabulary; what
    transformers raises for broken files.
    """
    model = load_weights(layout.path, layout.options(ranks[0]))
    config = model.config.get_text_config()
    layers = layout.layers or config.num_hidden_layers
    if layers > config.num_hidden_layers:
        raise CapabilityError(
            f"the draft model has {config.num_hidden_layers} layers, not {layers}",
            hint="ask for fewer layers",
        )
    if layout.vocabulary not in {None, config.vocab_size}:
        raise CapabilityError(
            f"the draft model knows {config.vocab_size} tokens, its target {layout.vocabulary}",
            hint="a draft model has the vocabulary of its target",
        )
    return LoadedShards(
        tuple(Shard(model, layers, rank, layout.ranks) for rank in ranks),
        layout.groups(layers),
        config.max_position_embeddings,
    )


class InProcessTeam(LayerParallelModel):
    """Implements `DraftTeam` with all ranks in this process; drafts the same tokens."""

    def __init__(self, layout: ShardLayout) -> None:
        loaded = load_shards(layout, range(layout.ranks))
        super().__init__(loaded.shards, RankChannel(), loaded.groups, layout.threads)
        self.context_tokens = loaded.context_tokens
