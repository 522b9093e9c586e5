"""Attention over one part of the keys, and what it comes to over all parts.

For queries that see several blocks of keys: each block's own softmax, then the mean of the blocks'
outputs weighted by the softmax of their log-sum-exps, which is the softmax over all keys.
"""

from __future__ import annotations

import torch


def attend(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor | None,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention and the log-sum-exp of its scaled scores.

    queries: [1, heads, queries, head_dim]; keys, values: [1, heads, keys, head_dim]; mask: added to
    the scores, [1, 1, queries, keys], and of the queries' dtype. Every query must see a key.
    Returns [1, heads, queries, head_dim] and, in float32, [1, heads, queries].
    """
    if queries.device.type == "cpu" and queries.dtype != torch.float64:
        # 1.2 to 1.8 times as fast as the plain way below; torch has no public name for it
        flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu  # noqa: SLF001
        found, lse = flash(queries, keys, values, attn_mask=mask, scale=scale)
        return found, lse.float()
    return attend_plainly(queries, keys, values, mask, scale)


def attend_plainly(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor | None,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """As `attend`, in torch's public operators, on any device and in any dtype."""
    scores = (queries @ keys.transpose(-1, -2)).to(torch.promote_types(queries.dtype, torch.float))
    scores = scores * scale if mask is None else scores * scale + mask
    lse = scores.logsumexp(dim=-1)
    return (scores - lse[..., None]).exp().to(values.dtype) @ values, lse


def merge(outputs: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
    """One output from those over the parts of the keys.

    outputs: [..., parts, head_dim]; lse: [..., parts], -inf for a part without keys. Returns
    [..., head_dim], in the dtype of `outputs`.
    """
    weights = lse.softmax(dim=-1)[..., None]
    return (weights * outputs).sum(dim=-2).to(outputs.dtype)
