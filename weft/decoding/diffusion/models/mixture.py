"""LLaDA2's mixture of experts (arXiv 2512.15745) as transformers' GLM-4 MoE.

Both are one architecture under two names: norms of query and key heads, rotary positions of a part
of each head, experts chosen by groups from sigmoid scores, shared experts. Published folders keep
queries, keys and values in one tensor, and every expert by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import torch
from safetensors import safe_open
from transformers import Glm4MoeForCausalLM

from weft.decoding.config_fields import ConfigFields

if TYPE_CHECKING:
    from transformers import PretrainedConfig

_MOST_EXPERTS: Final = 4096
_BIAS: Final = "mlp.gate.e_score_correction_bias"
_NAMES: Final = {
    "self_attn.o_proj": "attention.dense",
    "self_attn.q_norm": "attention.query_layernorm",
    "self_attn.k_norm": "attention.key_layernorm",
    _BIAS: "mlp.gate.expert_bias",
}
"""Names within a layer: transformers', and the published ones."""


def expert_settings(config: ConfigFields) -> dict[str, object]:
    """The settings of the experts, for `Glm4MoeConfig`.

    Raises: `CapabilityError` naming the key that is missing, or does not fit the others.
    """
    experts = config.whole("num_experts", 2, _MOST_EXPERTS)
    groups = config.whole("n_group", 1, experts)
    if experts % groups or experts // groups < 2:
        raise config.wrong("n_group", f"{experts} experts are not groups of two or more each")
    open_groups = config.whole("topk_group", 1, groups)
    most = open_groups * (experts // groups)
    return {
        "n_routed_experts": experts,
        "n_group": groups,
        "topk_group": open_groups,
        # the weight of a single expert is published without a norm
        "num_experts_per_tok": config.whole("num_experts_per_tok", 2, most),
        "n_shared_experts": config.whole("num_shared_experts", 1, 64),
        "moe_intermediate_size": config.whole("moe_intermediate_size", 1, 1 << 20),
        "first_k_dense_replace": config.whole("first_k_dense_replace", 0, 512, 0),
        "routed_scaling_factor": config.number("routed_scaling_factor", 0.0, 1e6, 1.0),
        "norm_topk_prob": True,
        "use_qk_norm": True,
        "attention_bias": False,
        "num_nextn_predict_layers": 0,
    }


def rotated_share(config: ConfigFields) -> float:
    """The share of each head that positions rotate. Raises: as `expert_settings`."""
    share = config.number("partial_rotary_factor", 0.0, 1.0, 0.5)
    if "rotary_dim" in config and "head_dim" in config:
        rotated = int(config.whole("head_dim", 2, 4096) * share)
        if config.whole("rotary_dim", 0, 4096) != rotated:
            raise config.wrong("rotary_dim", f"not {rotated}, as partial_rotary_factor has it")
    return share


def published_shapes(config: PretrainedConfig) -> Mapping[str, tuple[int, ...]]:
    """The tensors of such a folder, by their published names."""
    with torch.device("meta"):
        model = Glm4MoeForCausalLM(config)
    shapes: dict[str, tuple[int, ...]] = {}
    for name, tensor in model.state_dict().items():
        shape = tuple(tensor.shape)
        published, rows = _sources(name, config)
        if rows is not None:
            shape = (max(rows.stop, shapes.get(published[0], (0,))[0]), shape[1])
        elif name.endswith(".experts.gate_up_proj"):
            shape = (shape[1] // 2, shape[2])
        elif name.endswith(".experts.down_proj"):
            shape = shape[1:]
        shapes |= dict.fromkeys(published, shape)
    return shapes


def load_mixture(
    files: Sequence[Path], config: PretrainedConfig, dtype: torch.dtype, attends: str
) -> Glm4MoeForCausalLM:
    """The model of published weights that `check_weights` found to fit, on the CPU."""
    with torch.device("meta"):
        model = Glm4MoeForCausalLM(config)
    model.set_attn_implementation(attends)
    with ExitStack() as stack:
        opened = [stack.enter_context(safe_open(file, framework="pt")) for file in files]
        where = {name: file for file in opened for name in file.keys()}  # noqa: SIM118
        weights = {}
        for name in model.state_dict():
            published, rows = _sources(name, config)
            parts = [where[part].get_tensor(part) for part in published]
            kept = torch.float32 if name.endswith(_BIAS) else dtype  # it decides between scores
            weights[name] = _joined(name, parts, rows).to(kept)
    model.load_state_dict(weights, assign=True)
    # the frequencies of positions are no weights
    model.model.rotary_emb = type(model.model.rotary_emb)(config)
    return model.requires_grad_(False).eval()


def _sources(name: str, config: PretrainedConfig) -> tuple[list[str], slice | None]:
    """The published tensors of which one of transformers consists, and the rows it has of it."""
    if name == "model.embed_tokens.weight":
        return ["model.word_embeddings.weight"], None
    layer, inside, last = name.partition(".mlp.experts.")
    if inside:
        kinds = ("gate_proj", "up_proj") if last == "gate_up_proj" else ("down_proj",)
        numbers = range(config.n_routed_experts)
        return [f"{layer}{inside}{n}.{kind}.weight" for n in numbers for kind in kinds], None
    start = 0
    sizes = [config.num_attention_heads, config.num_key_value_heads, config.num_key_value_heads]
    for part, heads in zip("qkv", sizes, strict=True):
        end = start + heads * config.head_dim
        if name.endswith(f"self_attn.{part}_proj.weight"):
            joined = name.replace(f"self_attn.{part}_proj", "attention.query_key_value")
            return [joined], slice(start, end)
        start = end
    for ours, published in _NAMES.items():
        name = name.replace(ours, published)
    return [name], None


def _joined(name: str, parts: list[torch.Tensor], rows: slice | None) -> torch.Tensor:
    if rows is not None:
        return parts[0][rows].contiguous()
    if name.endswith(".experts.gate_up_proj"):
        pairs = zip(parts[::2], parts[1::2], strict=True)
        return torch.stack([torch.cat(pair) for pair in pairs])
    return torch.stack(parts) if name.endswith(".experts.down_proj") else parts[0]
