"""The published models once more, slowly: plain torch, one text at a time, nothing cached."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transformers import PreTrainedModel


def seen(slots: int, block: int) -> torch.Tensor:
    """bool [slots, slots]: all see all, or a slot sees its block and those before."""
    if not block:
        return torch.ones(slots, slots, dtype=torch.bool)
    number = torch.arange(slots) // block
    return number[:, None] >= number[None, :]


def by_transformers(model: PreTrainedModel, ids: Sequence[int], block: int) -> torch.Tensor:
    """Raw logits [slots, vocabulary] by transformers' module and an explicit 4-D mask."""
    mask = torch.zeros(1, 1, len(ids), len(ids))
    mask.masked_fill_(~seen(len(ids), block), float("-inf"))
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        logits: torch.Tensor = model(torch.tensor([ids]), attention_mask=mask).logits[0]
    return logits


def llada(
    config: Mapping[str, Any], weights: Mapping[str, torch.Tensor], ids: Sequence[int]
) -> torch.Tensor:
    """Raw logits of a LLaDA, from the description of its block: RMS norms before attention and
    feed-forward, rotations of halves, silu(ff_proj(x)) * up_proj(x), all see all."""
    heads, groups = config["n_heads"], config["n_heads"] // config["n_kv_heads"]
    size = config["d_model"] // heads
    hidden = weights["model.transformer.wte.weight"][torch.tensor(ids)]

    def normed(x: torch.Tensor, name: str) -> torch.Tensor:
        square = x.pow(2).mean(-1, keepdim=True) + config["rms_norm_eps"]
        return x / square.sqrt() * weights[name]

    def split(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(len(ids), -1, size).transpose(0, 1)

    for layer in range(config["n_layers"]):
        block = f"model.transformer.blocks.{layer}."
        x = normed(hidden, block + "attn_norm.weight")
        query, key, value = (
            split(x @ weights[f"{block}{part}_proj.weight"].T) for part in ("q", "k", "v")
        )
        query, key = turned(query, config["rope_theta"]), turned(key, config["rope_theta"])
        key, value = (part.repeat_interleave(groups, 0) for part in (key, value))
        weight = (query @ key.transpose(1, 2) / math.sqrt(size)).softmax(-1)
        together = (weight @ value).transpose(0, 1).reshape(len(ids), -1)
        hidden = hidden + together @ weights[block + "attn_out.weight"].T
        x = normed(hidden, block + "ff_norm.weight")
        gate = torch.nn.functional.silu(x @ weights[block + "ff_proj.weight"].T)
        inner = gate * (x @ weights[block + "up_proj.weight"].T)
        hidden = hidden + inner @ weights[block + "ff_out.weight"].T
    out = normed(hidden, "model.transformer.ln_f.weight")
    return out @ weights["model.transformer.ff_out.weight"].T


def turned(x: torch.Tensor, theta: float) -> torch.Tensor:
    """[heads, slots, size], the two halves of each head turned as pairs."""
    half = x.shape[-1] // 2
    speed = theta ** (-torch.arange(half) / half)
    angle = torch.arange(x.shape[1])[:, None] * speed
    first, second = x[..., :half], x[..., half:]
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def aligned(raw: torch.Tensor, *, shifted: bool) -> torch.Tensor:
    """Row i predicts slot i; the first row of a shifted model means nothing."""
    return torch.cat([raw[:1], raw[:-1]]) if shifted else raw
