"""A pass of a small Llama over texts of equal length, for training: no cache, and any attention.

Computes what transformers' own modules compute, with their weights and fewer steps. Products are in
bfloat16 where the machine is fast in it; attention is not: its backward pass is slow there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM


def hidden(
    model: LlamaForCausalLM, ids: torch.Tensor, wanted: torch.Tensor, sees: torch.Tensor | None
) -> torch.Tensor:
    """[wanted slots, width]: what the head reads there, with gradients.

    ids, wanted: [texts, slots]. sees: [slots, slots], True where a slot sees another; None: all see
    all.
    """
    base, config = model.model, model.config
    turns = _turns(base.rotary_emb.inv_freq, ids.shape[1])
    states = base.embed_tokens(ids)
    eps: float = config.rms_norm_eps
    for layer in base.layers:
        read = _normed(states, layer.input_layernorm.weight, eps)
        found = _attention(layer.self_attn, read, turns, sees)
        if layer is base.layers[-1]:  # from here on, slots do without each other
            states, found = states[wanted], found[wanted]
        states = states + layer.self_attn.o_proj(found)
        read = _normed(states, layer.post_attention_layernorm.weight, eps)
        both = torch.cat([layer.mlp.gate_proj.weight, layer.mlp.up_proj.weight])
        gate, up = linear(read, both).chunk(2, dim=-1)
        states = states + layer.mlp.down_proj(silu(gate) * up)
    return _normed(states, base.norm.weight, eps)


def block_causal(slots: int, block: int) -> torch.Tensor:
    """[slots, slots]: a slot sees its block and those before. Blocks of one are causal."""
    blocks = torch.arange(slots) // block
    return blocks[:, None] >= blocks


def _normed(states: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return rms_norm(states, (states.shape[-1],), weight, eps)


def _turns(frequencies: torch.Tensor, slots: int) -> tuple[torch.Tensor, torch.Tensor]:
    angles = torch.arange(slots)[:, None] * frequencies
    return angles.cos(), angles.sin()


def _turned(states: torch.Tensor, turns: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Rotary positions on [texts, heads, slots, head_dim]."""
    first, second = states.chunk(2, dim=-1)
    cos, sin = turns
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def _attention(
    attention: torch.nn.Module,
    read: torch.Tensor,
    turns: tuple[torch.Tensor, torch.Tensor],
    sees: torch.Tensor | None,
) -> torch.Tensor:
    """[texts, slots, width], before the heads are mixed."""
    texts, slots, width = read.shape
    three = (attention.q_proj, attention.k_proj, attention.v_proj)
    weights = torch.cat([projection.weight for projection in three])
    apart = linear(read, weights).view(texts, slots, 3, -1, attention.head_dim)
    query, key, value = apart.permute(2, 0, 3, 1, 4).float()
    with torch.autocast(read.device.type, enabled=False):
        found = scaled_dot_product_attention(
            _turned(query, turns), _turned(key, turns), value, sees
        )
    return found.transpose(1, 2).reshape(texts, slots, width)
