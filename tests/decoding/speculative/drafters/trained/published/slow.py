"""The published drafters once more, from their authors' code: slow, without caches or trees."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.nn.functional import silu

Config = Mapping[str, Any]
Weights = Mapping[str, torch.Tensor]


def normed(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * weight


def frequencies(config: Config) -> torch.Tensor:
    """Llama 3's scaling where the config has it: slow waves are slower still by the factor."""
    size = config["head_dim"]
    plain = config.get("rope_theta", 10000.0) ** (-torch.arange(0, size, 2) / size)
    scaling = config.get("rope_scaling")
    if not scaling:
        return plain
    length = scaling["original_max_position_embeddings"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    waves = 2 * math.pi / plain
    share = ((length / waves - low) / (high - low)).clamp(0, 1)
    return plain * share + plain / scaling["factor"] * (1 - share)


def turned(x: torch.Tensor, places: torch.Tensor, config: Config) -> torch.Tensor:
    """[heads, rows, size], the two halves of each head turned as pairs."""
    angle = places[:, None] * frequencies(config)
    first, second = x.chunk(2, -1)
    return torch.cat(
        [first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()], -1
    )


def heads_of(x: torch.Tensor, weights: Weights, name: str, config: Config) -> torch.Tensor:
    """[heads, rows, size] of a projection, normalised where there is a weight for it."""
    split = (x @ weights[f"{name}_proj.weight"].T).unflatten(-1, (-1, config["head_dim"]))
    norm = f"{name}_norm.weight"
    if norm in weights:
        split = normed(split, weights[norm], config["rms_norm_eps"])
    return split.transpose(0, 1)


def attended(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, sees: torch.Tensor
) -> torch.Tensor:
    groups = len(query) // len(key)
    key, value = (of.repeat_interleave(groups, 0) for of in (key, value))
    scores = (query @ key.transpose(1, 2) / math.sqrt(query.shape[-1])).masked_fill(~sees, -1e30)
    return (scores.softmax(-1) @ value).transpose(0, 1).flatten(1)


def fed_forward(x: torch.Tensor, weights: Weights, prefix: str) -> torch.Tensor:
    gate, up, down = (weights[f"{prefix}mlp.{kind}_proj.weight"] for kind in ("gate", "up", "down"))
    return (silu(x @ gate.T) * (x @ up.T)) @ down.T


def eagle3_chain(
    config: Config,
    weights: Weights,
    features: torch.Tensor,
    tokens: Sequence[int],
    steps: int,
    embed: Callable[[Sequence[int]], torch.Tensor],
) -> list[list[float]]:
    """Log probabilities [steps][draft vocabulary] of a chain that follows the likeliest token.

    features: [rows, 3 * width] up to the last read token; tokens: the one after each row.
    """
    inner = config.get("transformer_layer_config", config)
    prefix = "layers.0." if "layers.0.hidden_norm.weight" in weights else "midlayer."
    states = list(features @ weights["fc.weight"].T)
    written = list(tokens)
    found = []
    for _ in range(steps):
        state = _eagle3_last(config, inner, weights, prefix, torch.stack(states), embed(written))
        logits = normed(state, weights["norm.weight"], inner["rms_norm_eps"])
        row = (logits @ weights["lm_head.weight"].T).log_softmax(-1)
        found.append(row.tolist())
        best = int(row.argmax())
        written.append(best + int(weights["d2t"][best]))
        states.append(state)
    return found


def _eagle3_last(
    config: Config,
    inner: Config,
    weights: Weights,
    prefix: str,
    states: torch.Tensor,
    embedded: torch.Tensor,
) -> torch.Tensor:
    eps = inner["rms_norm_eps"]
    normal = normed(states, weights[prefix + "hidden_norm.weight"], eps)
    token = normed(embedded, weights[prefix + "input_layernorm.weight"], eps)
    both = torch.cat([token, normal], -1)
    places = torch.arange(len(states))
    query, key, value = (
        heads_of(both, weights, f"{prefix}self_attn.{kind}", inner) for kind in ("q", "k", "v")
    )
    causal = places[:, None] >= places[None]
    together = attended(turned(query, places, inner), turned(key, places, inner), value, causal)
    x = normal if config.get("norm_before_residual") else states
    x = x + together @ weights[prefix + "self_attn.o_proj.weight"].T
    after = normed(x, weights[prefix + "post_attention_layernorm.weight"], eps)
    return (x + fed_forward(after, weights, prefix))[-1]


def medusa(config: Config, weights: Weights, state: torch.Tensor) -> torch.Tensor:
    """[heads, vocabulary] of FasterDecoding's heads for one state."""
    found = []
    for head in range(config["medusa_num_heads"]):
        x = state
        for layer in range(config["medusa_num_layers"]):
            name = f"{head}.{layer}.linear."
            x = x + silu(x @ weights[name + "weight"].T + weights[name + "bias"])
        found.append(x @ weights[f"{head}.{config['medusa_num_layers']}.weight"].T)
    return torch.stack(found)


def medusa_vllm(config: Config, weights: Weights, state: torch.Tensor) -> torch.Tensor:
    """[heads, vocabulary]; tokens that are not drafted have minus infinity."""
    found = []
    for head in range(config["num_heads"]):
        x = state
        for layer in range(config["num_hidden_layers"]):
            name = f"blocks.{head}.layers.{layer}."
            x = x + silu(
                x @ weights[name + "weight"].T + weights.get(name + "bias", torch.zeros(()))
            )
        shared = config.get("original_lm_head")
        table = weights["lm_head.weight" if shared else f"lm_heads.{head}.weight"]
        ids = weights.get("token_map", torch.arange(config["vocab_size"]))
        rows = table if len(table) == len(ids) else table[ids.long()]
        logits = torch.full((config["vocab_size"],), -torch.inf)
        logits[ids.long()] = rows @ x
        found.append(logits)
    return torch.stack(found)


def dflash(
    config: Config, weights: Weights, features: torch.Tensor, block: torch.Tensor
) -> torch.Tensor:
    """[block - 1, width]: what the head reads for the open slots after the read rows.

    features: [rows, taps * width]; block: [block, width], the last token and masks.
    """
    inner = config.get("transformer_layer_config", config)
    eps = inner["rms_norm_eps"]
    context = normed(features @ weights["fc.weight"].T, weights["hidden_norm.weight"], eps)
    rows = len(context)
    places = torch.arange(rows + len(block))
    x = block
    for layer in range(inner["num_hidden_layers"]):
        prefix = f"layers.{layer}."
        entering = normed(x, weights[prefix + "input_layernorm.weight"], eps)
        name = prefix + "self_attn."
        query = turned(heads_of(entering, weights, name + "q", inner), places[rows:], inner)
        whole = torch.cat([context, entering])
        key = turned(heads_of(whole, weights, name + "k", inner), places, inner)
        value = heads_of(whole, weights, name + "v", inner)
        every = torch.ones(len(block), len(whole), dtype=torch.bool)
        x = x + attended(query, key, value, every) @ weights[name + "o_proj.weight"].T
        after = normed(x, weights[prefix + "post_attention_layernorm.weight"], eps)
        x = x + fed_forward(after, weights, prefix)
    return normed(x, weights["norm.weight"], eps)[1:]
