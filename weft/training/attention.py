"""Causal attention for the training of short texts on a CPU, by batched products.

On a CPU, for some hundred tokens, the backward pass of torch's fused kernel takes most of a step.
Texts are padded behind their end, so that no mask but the causal one is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch
from transformers import AttentionInterface

if TYPE_CHECKING:
    from transformers import PreTrainedModel

NAME: Final = "weft_short_texts"


def use_for(model: PreTrainedModel) -> None:
    """Have `model` attend by it where it is on a CPU."""
    if model.device.type == "cpu":
        AttentionInterface.register(NAME, attend)
        model.set_attn_implementation(NAME)


def attend(
    _layer: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    _mask: torch.Tensor | None,
    scaling: float | None = None,
    **_unused: Any,
) -> tuple[torch.Tensor, None]:
    """query [texts, heads, time, dim], key and value [texts, kv_heads, time, dim] ->
    [texts, time, heads, dim]
    """
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    factor = query.shape[-1] ** -0.5 if scaling is None else scaling
    scores = torch.matmul(query, key.transpose(2, 3)) * factor
    sees = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    weights = scores.masked_fill(~sees, float("-inf")).softmax(-1)
    return torch.matmul(weights, value).transpose(1, 2).contiguous(), None
