"""A query as spans of a network: columns, visibility, and long texts in pieces.

The mask of a pass grows with the square of its tokens, so tokens that see nothing later are read
piece by piece.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate, chain

import numpy as np
import torch
from numpy.typing import NDArray

from weft.core.errors import CapabilityError, InternalError, ModelRequestError
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Slots
from weft.decoding.diffusion.query import Query, SoftSlots
from weft.decoding.network.packing import HiddenStateWrite, Span
from weft.decoding.network.visibility import BlockMask

MixEmbeddings = Callable[[SoftSlots], torch.Tensor]
"""The embeddings [slots, width] of soft slots."""


def span_of(query: Query, slot: int, traits: ModelTraits, mixing: MixEmbeddings) -> Span:
    """The query in cache row `slot`; logits in the order of `wanted`, then of `shadows`.

    A model with a shift predicts a slot from the one before it, which is read, too.

    Raises: `InternalError` for slots that cannot be predicted, `CapabilityError` for shadows of a
    model without a mask, `ModelRequestError` for a prediction of the first token.
    """
    if len(query.wanted) and int(query.wanted[-1]) >= query.reach:
        raise InternalError(f"slot {int(query.wanted[-1])} is wanted beyond {query.reach}")
    sources = _sources(query, traits)
    columns, tokens = _fed(query, sources)
    groups = _copies(query, traits)
    rows = np.searchsorted(columns, sources).tolist()
    # the first token of a group predicts: the masked one, or the one before it
    rows += [len(columns) + number * len(groups[0]) for number in range(len(groups))]
    copied = np.fromiter(chain.from_iterable(groups), np.int64)
    read = query.canvas.ids[copied]
    if groups:
        assert traits.mask_id is not None
        read[_ends(groups)] = traits.mask_id
    first = query.canvas.length
    return Span(
        slot,
        [*columns.tolist(), *range(first, first + len(copied))],
        [*tokens.tolist(), *read.tolist()],
        len(rows),
        _visibility(query, traits, groups),
        writes=_writes(query.soft, columns, mixing),
        rows=tuple(rows),
    )


def horizon(last: int, reach: int, traits: ModelTraits) -> int:
    """The first slot that is not seen when `last` is the last slot read."""
    if not traits.block:
        return reach
    return min(reach, (last // traits.block + 1) * traits.block)


def _sources(query: Query, traits: ModelTraits) -> Slots:
    """The slots that predict the wanted ones."""
    if not traits.shifted:
        return query.wanted
    if 0 in query.wanted or 0 in query.shadows:
        raise ModelRequestError(
            "this model predicts a token from the one before it, and slot 0 has none",
            hint="begin the prompt with a token",
        )
    return query.wanted - 1


def _fed(query: Query, sources: Slots) -> tuple[Slots, NDArray[np.int64]]:
    """Slots and tokens to read, ascending: those of `feed`, and missing `sources`."""
    missing = np.setdiff1d(sources, query.feed)
    if not len(missing):
        return query.feed, query.read
    columns = np.concatenate([query.feed, missing])
    order = np.argsort(columns)
    return columns[order], np.concatenate([query.read, query.canvas.ids[missing]])[order]


def _copies(query: Query, traits: ModelTraits) -> tuple[tuple[int, ...], ...]:
    """For each shadow, the positions of the tokens that are read in addition to the canvas."""
    if not len(query.shadows):
        return ()
    if traits.mask_id is None:
        raise CapabilityError(
            "a model without a mask cannot say what it would write in place of a token",
            hint="use a policy that does not verify, or a masked model",
        )
    if traits.shifted:
        return tuple((slot - 1, slot) for slot in query.shadows.tolist())
    return tuple((slot,) for slot in query.shadows.tolist())


def _ends(groups: tuple[tuple[int, ...], ...]) -> list[int]:
    """Indices of the last token of each group, the masked one, among all of them."""
    return [end - 1 for end in accumulate(map(len, groups))]


def _visibility(
    query: Query, traits: ModelTraits, groups: tuple[tuple[int, ...], ...]
) -> BlockMask:
    causal = 0
    if traits.attention == "causal_encoder":
        causal = query.reach if query.kind == "persist" else query.canvas.window.start
    return BlockMask(
        query.reach,
        block=traits.block,
        causal=causal,
        copies=groups,
        first_copy=query.canvas.length if groups else 0,
    )


def _writes(
    soft: SoftSlots | None, columns: Slots, mixing: MixEmbeddings
) -> tuple[HiddenStateWrite, ...]:
    """The soft slots that are read."""
    if soft is None or not len(read := np.flatnonzero(np.isin(soft.slots, columns))):
        return ()
    mixed = SoftSlots(soft.slots[read], soft.ids[read], soft.weights[read])
    rows = tuple(np.searchsorted(columns, mixed.slots).tolist())
    return (HiddenStateWrite(0, rows, lambda _: mixing(mixed)),)


def split_query(query: Query, traits: ModelTraits, most: int) -> list[Query]:
    """The query in pieces of at most `most` slots, to be asked one after another.

    The last piece predicts, and may be longer: the window and blocks are never cut, nor a query
    with full attention.
    """
    if traits.attention == "full" or query.scratch or query.ids is not None:
        return [query]
    size = traits.block or 1
    nothing = np.empty(0, dtype=np.int64)
    pieces, feed = [], query.feed
    while len(feed) > most:
        end = min(int(feed[most - 1]) + 1, _uncut(query, traits)) // size * size
        taken = int(np.searchsorted(feed, end))
        if not taken:
            break
        piece = replace(
            query, feed=feed[:taken], wanted=nothing, shadows=nothing, soft=None, reach=end
        )
        pieces.append(piece)
        feed = feed[taken:]
    return [*pieces, replace(query, feed=feed)]


def _uncut(query: Query, traits: ModelTraits) -> int:
    """The slot from which on all is read together."""
    firsts = [query.reach]
    if query.kind != "persist":
        firsts.append(query.canvas.window.start)
    if len(query.wanted):
        firsts.append(int(query.wanted[0]) - traits.shifted)
    return min(firsts)
