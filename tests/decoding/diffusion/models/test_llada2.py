"""LLaDA2 folders (mixture of experts): keys and settings of inclusionAI/LLaDA2.1-mini."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.decoding.diffusion.models import published as p
from tests.decoding.diffusion.models import slow
from tests.decoding.diffusion.models.test_published import EXACT, IDS, predictions
from weft.core.errors import CapabilityError
from weft.decoding.diffusion.models import load

KEPT = [token for token in range(p.VOCABULARY) if token != p.MASK]


@pytest.mark.parametrize(
    ("change", "block"),
    [
        ({}, 32),
        ({"block_size": 4}, 4),
        ({"first_k_dense_replace": 0, "num_shared_experts": 2}, 32),
        ({"n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.0}, 32),
    ],
)
def test_a_llada2_predicts_as_its_description(
    change: dict[str, Any], block: int, tmp_path: Path
) -> None:
    config = p.LLADA2 | change
    weights = p.llada2_weights(config)
    model = load(p.write(tmp_path / "llada2", config, weights), EXACT)
    expected = slow.llada2(config, weights, IDS, block)[1:].numpy()
    found = predictions(model, IDS)
    np.testing.assert_allclose(found[:, KEPT], expected[:, KEPT], atol=2e-4, rtol=1e-4)
    traits = model.traits
    assert (traits.attention, traits.block, traits.shifted) == ("block_causal", block, False)
    assert (traits.mask_id, model.preset, model.network.layers) == (p.MASK, "llada2", 3)


def test_every_tensor_counts(tmp_path: Path) -> None:
    """A folder in which one tensor of a kind is another predicts otherwise."""
    weights = p.llada2_weights(p.LLADA2)
    before = predictions(load(p.write(tmp_path / "a", p.LLADA2, weights), EXACT), IDS)
    kinds = {name.replace("layers.2.", "layers.1.") for name in weights if ".experts." not in name}
    for number, name in enumerate(sorted(kinds)):
        other = weights | {name: weights[name] * 1.5 + torch.randn_like(weights[name]) * 0.3}
        changed = load(p.write(tmp_path / str(number), p.LLADA2, other), EXACT)
        after = predictions(changed, IDS)
        assert np.abs(before[:, KEPT] - after[:, KEPT]).max() > 1e-4, name


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"use_qkv_bias": True}, "use_qkv_bias"),
        ({"score_function": "softmax"}, "score_function"),
        ({"moe_router_enable_expert_bias": False}, "moe_router_enable_expert_bias"),
        ({"n_group": 5}, "n_group"),
        ({"topk_group": 9}, "topk_group"),
        ({"num_experts_per_tok": 7}, "num_experts_per_tok"),
        ({"num_experts_per_tok": 1}, "num_experts_per_tok"),
        ({"num_shared_experts": 0}, "num_shared_experts"),
        ({"moe_intermediate_size": None}, "moe_intermediate_size"),
        ({"rotary_dim": 16}, "rotary_dim"),
        ({"image_token_offset": 9}, "image_token_offset"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "rope_scaling.type"),
        ({"quantization_config": {"quant_method": "fp8"}}, "quantization_config"),
    ],
)
def test_settings_that_are_not_run_are_refused_by_name(
    change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    path = p.write(tmp_path / "llada2", p.LLADA2 | change)
    with pytest.raises(CapabilityError) as caught:
        load(path, EXACT)
    assert f"config.json: {said}" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "shape", "said"),
    [
        ("model.layers.1.mlp.experts.7.up_proj.weight", None, "have no {name}"),
        ("model.layers.1.mlp.gate.expert_bias", None, "have no {name}"),
        ("model.layers.2.attention.query_key_value.weight", (64, 32), "{name} is [64, 32]"),
        ("model.layers.2.mlp.experts.3.down_proj.weight", (8, 32), "{name} is [8, 32]"),
        ("model.layers.1.mlp.experts.12.up_proj.weight", (8, 32), "have {name}, which"),
        ("model.layers.0.mlp.gate.weight", (12, 32), "have {name}, which"),
    ],
)
def test_weights_that_do_not_fit_are_refused_by_name(
    name: str, shape: tuple[int, ...] | None, said: str, tmp_path: Path
) -> None:
    weights = p.llada2_weights(p.LLADA2)
    weights.pop(name, None)
    if shape is not None:
        weights[name] = torch.zeros(shape)
    path = p.write(tmp_path / "llada2", p.LLADA2, weights)
    with pytest.raises(CapabilityError) as caught:
        load(path, EXACT)
    assert said.format(name=name) in str(caught.value)
    assert str(path) in str(caught.value)
