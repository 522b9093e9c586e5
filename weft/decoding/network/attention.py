"""Attention over rows of different lengths, plugged into transformers' own model classes."""

from __future__ import annotations

from functools import cache

import torch
from torch.nn.functional import pad, scaled_dot_product_attention

from weft.core.errors import CapabilityError
from weft.decoding.network.cache import KvCache
from weft.decoding.network.packing import AttentionGroup, PackedBatch

NAME = "weft_spans"
_UNSUPPORTED = ("sliding_window", "softcap", "s_aux", "position_bias")


def register() -> None:
    """Make the attention known to transformers under `NAME`. Harmless when repeated."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, attend)


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    _mask: torch.Tensor | None,
    scaling: float | None = None,
    *,
    step: PackedBatch | None = None,
    cache: KvCache | None = None,
    **options: object,
) -> tuple[torch.Tensor, None]:
    """Write the step's keys and values into their slots and attend within each row.

    query: [1, heads, tokens, head_dim]; key, value: [1, kv_heads, tokens, head_dim]. Returns
    [1, tokens, heads, head_dim].

    Raises: `CapabilityError` for a model whose attention is of another kind.
    """
    unsupported = [name for name in _UNSUPPORTED if options.get(name) is not None]
    if unsupported or step is None or cache is None:
        raise CapabilityError(f"a local model cannot have {unsupported or 'this attention'}")
    keys, values = cache.halves(module.layer_idx)
    keys[step.slots, :, step.columns] = key[0].transpose(0, 1)
    values[step.slots, :, step.columns] = value[0].transpose(0, 1)
    rows = query[0].transpose(0, 1).unflatten(1, (keys.shape[1], -1))
    parts = [
        attend_group(
            group,
            rows,
            keys[group.low : group.high, :, : group.columns],
            values[group.low : group.high, :, : group.columns],
            scaling,
        )
        for group in step.groups
    ]
    if step.segment_attention is not None:
        parts.append(step.segment_attention.attend(query[0], keys, values, scaling).flatten(1))
    found = parts[0] if len(parts) == 1 else torch.cat(parts)
    return found.unflatten(1, (-1, keys.shape[3]))[None], None


@cache
def rows_depend(dtype: torch.dtype, queries_per_key: int, head_dim: int) -> bool:
    """Whether a CPU's attention gives a query other bits beside the queries of a draft than alone.

    Found out by trying: kernels differ by the processor.
    """
    drafts, tokens, columns = 32, 8, 512
    random = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, head_dim, generator=random).to(dtype)

    queries = drawn(drafts * tokens, 1, queries_per_key)
    keys, values = drawn(1, 1, columns), drawn(1, 1, columns)
    mask = torch.zeros(1, 1, 1, columns, dtype=dtype)

    def found(block: int) -> torch.Tensor:
        blocks = len(queries) // block
        shown = mask.expand(blocks, 1, block * queries_per_key if block > 1 else 1, columns)
        group = AttentionGroup(0, len(queries), 0, 1, columns, shown, block)
        return attend_group(group, queries, keys, values, None)

    with torch.inference_mode():
        return not torch.equal(found(1), found(tokens))


def attend_group(
    group: AttentionGroup,
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scaling: float | None,
) -> torch.Tensor:
    """What one group's tokens see: [tokens, heads * head_dim].

    query: all tokens of the step, [tokens, kv_heads, heads / kv_heads, head_dim]; keys, values: of
    the group's slots and columns, [slots, kv_heads, columns, head_dim]. Query heads that share a
    key head are laid side by side as queries, so that no key is repeated.
    """
    slots, kv_heads, _, width = keys.shape
    tokens = group.last - group.first
    queries = query if tokens == query.shape[0] else query[group.first : group.last]
    if group.block:
        return _attend_in_blocks(group, queries, keys, values, scaling)
    if tokens == slots:
        found = scaled_dot_product_attention(queries, keys, values, group.mask, scale=scaling)
        return found.reshape(tokens, -1)
    each = tokens // slots
    laid = queries.unflatten(0, (slots, each)).permute(0, 2, 3, 1, 4)
    found = scaled_dot_product_attention(
        laid.reshape(slots, kv_heads, -1, width), keys, values, group.mask, scale=scaling
    )
    apart = found.reshape(slots, kv_heads, -1, each, width)
    return apart.permute(0, 3, 1, 2, 4).reshape(tokens, -1)


def _attend_in_blocks(
    group: AttentionGroup,
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scaling: float | None,
) -> torch.Tensor:
    """As `attend_group`, in products of one size, so that a token's bits do not depend on how many
    others are read with it. queries: those of the group alone; keys, values: of its one slot.
    """
    assert group.mask is not None
    blocks, block = len(group.mask), group.block
    tail = blocks * block - len(queries) - group.lead
    padded = pad(queries, (0, 0) * 3 + (group.lead, tail)) if block > 1 else queries
    laid = padded.unflatten(0, (blocks, block)).permute(0, 2, 3, 1, 4).flatten(2, 3)
    found = scaled_dot_product_attention(
        laid,
        keys.expand(blocks, -1, -1, -1),
        values.expand(blocks, -1, -1, -1),
        group.mask,
        scale=scaling,
    )
    apart = found.unflatten(2, (-1, block)).permute(0, 3, 1, 2, 4)
    return apart.reshape(blocks * block, -1)[group.lead : group.lead + len(queries)]
