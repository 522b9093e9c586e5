"""A network in this process as a diffusion model: canvases in, aligned logits out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cosine_similarity

from weft.core.errors import CapabilityError, InternalError, ModelRequestError
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Bits, Slots
from weft.decoding.diffusion.query import Query, SoftSlots
from weft.decoding.diffusion.spans import horizon, span_of, split_query

if TYPE_CHECKING:
    from weft.decoding.network.network import Network, SpanOutput
    from weft.decoding.network.packing import Span


class CachedColumns:
    """By row: the cache columns written since the row was forgotten."""

    def __init__(self) -> None:
        self._columns: dict[int, Bits] = {}

    def __contains__(self, row: int) -> bool:
        return row in self._columns

    def forget(self, row: int) -> None:
        """Drop the row."""
        self._columns.pop(row, None)

    def write(self, row: int, columns: Slots) -> None:
        """Note that `columns` contain keys of the row's text."""
        bits = self._sized(row, int(columns.max()) + 1)
        bits[columns] = True

    def lose(self, row: int, first: int) -> None:
        """Note that the columns from `first` on were overwritten."""
        self._sized(row, first)[first:] = False

    def check(self, row: int, end: int, fresh: Slots) -> None:
        """Check that all columns before `end` are written, or among the `fresh` ones.

        Raises: `InternalError` where a cache policy trusts keys that were never computed.
        """
        written = self._sized(row, end)[:end].copy()
        written[fresh[fresh < end]] = True
        if not written.all():
            slot = int(written.argmin())
            raise InternalError(f"row {row} sees slot {slot}, which was never read")

    def unused(self, taken: Collection[int]) -> int:
        """The lowest unused row that is not `taken`."""
        row = 0
        while row in self._columns or row in taken:
            row += 1
        return row

    def _sized(self, row: int, columns: int) -> Bits:
        bits = self._columns.get(row, np.zeros(0, dtype=np.bool_))
        if columns > len(bits):
            bits = np.concatenate([bits, np.zeros(columns - len(bits), dtype=np.bool_)])
        self._columns[row] = bits
        return bits


class KeyDriftProbe:
    """The first layers of `network`, which read a text whole to see how far its values moved.

    `layer`, from 0, is compared, or the last one. The values of layer 0 depend on the token alone.

    Raises: `CapabilityError` where the layers cannot be found.
    """

    def __init__(self, network: Network, layer: int = 1) -> None:
        self._network = network
        self._layer = min(layer, network.layers - 1)
        self._early = network.share(self._layer + 1)

    def moved(self, spans: Sequence[Span], slots: Sequence[Slots]) -> list[torch.Tensor]:
        """How far the values of `slots` moved from the cached ones in each span's row: 1 - cosine.

        The spans read their rows whole. Each answer is [slots], on the CPU.
        """
        self._early.forward(spans)
        distances = []
        for span, columns in zip(spans, slots, strict=True):
            now = self._early.values(span.slot, self._layer, columns.tolist())
            cached = self._network.values(span.slot, self._layer, columns.tolist())
            distances.append(1 - cosine_similarity(now.float(), cached.float(), dim=-1).cpu())
        return distances


class NetworkAdapter:
    """Implements `ModelAdapter`: the queries of a pass are one pass of the network, unpadded.

    Causal texts of more than `piece` slots are read in several passes, with the same keys.

    Rows of canvases are slots of the network's cache, which the adapter owns. The queries of one
    pass are of different rows, except for those that keep nothing (`Query.scratch`).

    Raises: `CapabilityError` for traits that are not those of the network.
    """

    def __init__(self, network: Network, traits: ModelTraits, piece: int = 1024) -> None:
        if traits.vocabulary > network.vocabulary_size:
            raise CapabilityError(
                f"a model of {network.vocabulary_size} tokens cannot predict {traits.vocabulary}"
            )
        if traits.mask_id is not None and not 0 <= traits.mask_id < network.vocabulary_size:
            raise CapabilityError(f"the model has no embedding for its mask, {traits.mask_id}")
        self.traits = traits
        self._network = network
        self._piece = piece
        self._cached = CachedColumns()
        self._probe: KeyDriftProbe | None = None
        self._banned = np.array([t for t in sorted(traits.banned) if t < traits.vocabulary], int)

    def forward(self, queries: Sequence[Query]) -> list[NDArray[np.float32]]:
        """See `ModelAdapter`.

        Raises: `ModelRequestError` for tokens outside the vocabulary and texts longer than the
        context, `InternalError` for a row that is fed twice or sees slots never read.
        """
        for query in queries:
            self._check(query)
        slots = self._slots(queries)
        chosen = self._chosen(queries, slots)
        cut = [split_query(query, self.traits, self._piece) for query in chosen]
        for early in zip_longest(*(parts[:-1] for parts in cut)):
            self._read([(one, slot) for one, slot in zip(early, slots, strict=True) if one])
        readings = self._read([(parts[-1], slot) for parts, slot in zip(cut, slots, strict=True)])
        return [self._without_banned(readings[slot].logits) for slot in slots]

    def forget(self, row: int) -> None:
        self._cached.forget(row)

    def _check(self, query: Query) -> None:
        if query.canvas.length > self._network.context_tokens:
            raise ModelRequestError(
                f"a canvas of {query.canvas.length} slots is longer than the model's"
                f" {self._network.context_tokens}",
                hint="ask for fewer tokens, or shorten the prompt",
            )
        read = query.read
        if len(read) and not 0 <= read.min() <= read.max() < self._network.vocabulary_size:
            raise ModelRequestError("the text holds tokens that the model does not know")

    def _slots(self, queries: Sequence[Query]) -> list[int]:
        """The cache slot of each query: its row, or an unused one for scratch queries."""
        fed = [query.canvas.row for query in queries if not query.scratch]
        if len(set(fed)) < len(fed):
            raise InternalError("two queries of a pass feed the same row")
        taken = {query.canvas.row for query in queries}
        slots = []
        for query in queries:
            slot = query.canvas.row
            if query.scratch:
                slot = self._cached.unused(taken)
                taken.add(slot)
            slots.append(slot)
        return slots

    def _chosen(self, queries: Sequence[Query], slots: Sequence[int]) -> list[Query]:
        """The queries with their choices resolved: chosen slots are fed."""
        asking = {n: query.choice for n, query in enumerate(queries) if query.choice is not None}
        if not asking:
            return list(queries)
        if self._probe is None:
            self._probe = KeyDriftProbe(self._network)
        spans = [self._whole(queries[number], slots[number]) for number in asking]
        moved = self._probe.moved(spans, [choice.slots for choice in asking.values()])
        chosen = list(queries)
        for (number, choice), far in zip(asking.items(), moved, strict=True):
            most = np.argsort(-far.numpy(), kind="stable")[: choice.count]
            feed = np.union1d(queries[number].feed, choice.slots[most])
            chosen[number] = replace(queries[number], feed=feed, choice=None)
        return chosen

    def _whole(self, query: Query, slot: int) -> Span:
        """A span that reads again all that the query sees."""
        nothing = np.empty(0, dtype=np.int64)
        feed = np.arange(query.reach)
        whole = replace(query, feed=feed, wanted=nothing, shadows=nothing, choice=None)
        return span_of(whole, slot, self.traits, self._mixed)

    def _read(self, queries: Sequence[tuple[Query, int]]) -> Mapping[int, SpanOutput]:
        """One pass over queries, each into a slot of the cache; the outputs by slot."""
        spans = [(query, span_of(query, slot, self.traits, self._mixed)) for query, slot in queries]
        for query, span in spans:
            self._check_seen(query, span)
        readings = self._network.forward(sorted((s for _, s in spans), key=lambda span: span.slot))
        for query, span in spans:
            if not query.scratch:
                self._cached.write(span.slot, _text(query, span))
                self._cached.lose(span.slot, query.canvas.length)
        return readings

    def _check_seen(self, query: Query, span: Span) -> None:
        """Check that all that the query sees was read; copy it for a scratch slot."""
        row, text = query.canvas.row, _text(query, span)
        end = horizon(int(text[-1]), query.reach, self.traits)
        if query.scratch and len(text) >= end:
            return
        self._cached.check(row, end, text)
        if query.scratch:
            self._network.copy_prefix(row, span.slot, end)

    def _mixed(self, soft: SoftSlots) -> torch.Tensor:
        embedded = self._network.embed(soft.ids.ravel().tolist())
        parts = embedded.reshape(*soft.ids.shape, -1)
        weights = torch.from_numpy(soft.weights).to(parts)
        return torch.einsum("sp,spw->sw", weights, parts)

    def _without_banned(self, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        allowed = logits[:, : self.traits.vocabulary]
        allowed[:, self._banned] = -np.inf
        return allowed


def _text(query: Query, span: Span) -> Slots:
    """The columns of a span that are slots of the canvas, without shadow copies."""
    columns = np.array(span.columns, dtype=np.int64)
    return columns[columns < query.canvas.length]
