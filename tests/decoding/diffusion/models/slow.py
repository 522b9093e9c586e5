"""The published models once more, slowly: plain torch, one text at a time, nothing cached."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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


def llada2(
    config: Mapping[str, Any], weights: Mapping[str, torch.Tensor], ids: Sequence[int], block: int
) -> torch.Tensor:
    """Raw logits of a LLaDA2, one slot and one expert at a time, from its published code."""
    size, eps = config["head_dim"], config["rms_norm_eps"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    part = int(size * config["partial_rotary_factor"])
    hidden = weights["model.word_embeddings.weight"][torch.tensor(ids)]

    def normed(x: torch.Tensor, name: str) -> torch.Tensor:
        return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * weights[name + ".weight"]

    def mlp(x: torch.Tensor, name: str) -> torch.Tensor:
        gate, up, down = (weights[f"{name}.{kind}_proj.weight"] for kind in ("gate", "up", "down"))
        return (torch.nn.functional.silu(x @ gate.T) * (x @ up.T)) @ down.T

    def half_turned(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([turned(x[..., :part], config["rope_theta"]), x[..., part:]], -1)

    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        x = normed(hidden, at + "input_layernorm")
        joined = x @ weights[at + "attention.query_key_value.weight"].T
        rows = joined.reshape(len(ids), heads + 2 * kv_heads, size).transpose(0, 1)
        query, key, value = rows.split([heads, kv_heads, kv_heads])
        query = half_turned(normed(query, at + "attention.query_layernorm"))
        key = half_turned(normed(key, at + "attention.key_layernorm"))
        key, value = (of.repeat_interleave(heads // kv_heads, 0) for of in (key, value))
        scores = query @ key.transpose(1, 2) / math.sqrt(size)
        scores = scores.masked_fill(~seen(len(ids), block), float("-inf"))
        together = (scores.softmax(-1) @ value).transpose(0, 1).reshape(len(ids), -1)
        hidden = hidden + together @ weights[at + "attention.dense.weight"].T
        x = normed(hidden, at + "post_attention_layernorm")
        if layer < config["first_k_dense_replace"]:
            hidden = hidden + mlp(x, at + "mlp")
        else:
            mixed = [expert_sum(config, weights, at + "mlp", row, mlp) for row in x]
            hidden = hidden + torch.stack(mixed) + mlp(x, at + "mlp.shared_experts")
    return normed(hidden, "model.norm") @ weights["lm_head.weight"].T


def expert_sum(
    config: Mapping[str, Any],
    weights: Mapping[str, torch.Tensor],
    name: str,
    row: torch.Tensor,
    mlp: Callable[[torch.Tensor, str], torch.Tensor],
) -> torch.Tensor:
    """The experts that one slot is routed to: from the best groups by their two best scores."""
    score = (weights[name + ".gate.weight"] @ row).sigmoid()
    biased = (score + weights[name + ".gate.expert_bias"]).tolist()
    each = config["num_experts"] // config["n_group"]
    groups = [range(first, first + each) for first in range(0, config["num_experts"], each)]
    groups.sort(key=lambda group: -sum(sorted(biased[e] for e in group)[-2:]))
    allowed = [expert for group in groups[: config["topk_group"]] for expert in group]
    chosen = sorted(allowed, key=lambda e: -biased[e])[: config["num_experts_per_tok"]]
    total = sum(float(score[e]) for e in chosen)
    made = torch.zeros_like(row)
    for expert in chosen:
        weight = config["routed_scaling_factor"] * float(score[expert]) / total
        made = made + weight * mlp(row, f"{name}.experts.{expert}")
    return made


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
