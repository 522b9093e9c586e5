"""A base model changed by an adapter file, against the same sums made by hand."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.decoding.diffusion.models import published as p
from tests.decoding.diffusion.models import slow
from tests.decoding.diffusion.models.test_published import EXACT, IDS, predictions
from weft.core.errors import CapabilityError
from weft.decoding import tensor_file
from weft.decoding.adapters import adapter_file
from weft.decoding.adapters.base import BaseModelTarget
from weft.decoding.diffusion.models import load
from weft.decoding.diffusion.models.folder import describe
from weft.decoding.speculative.trained_drafter import Fingerprint

LAYER = "model.layers.1.self_attn.q_proj"
BASE = {k: v for k, v in p.a2d("llama").items() if k != "architectures"} | {"model_type": "llama"}


def changes() -> dict[str, torch.Tensor]:
    torch.manual_seed(5)
    return {
        LAYER + ".lora_a": torch.randn(3, 32),
        LAYER + ".lora_b": torch.randn(32, 3),
        "model.norm.weight": torch.rand(32) + 0.5,
        "embedding_rows": torch.randn(1, 32),
        "embedding_ids": torch.tensor([p.MASK]),
    }


def folders(tmp_path: Path, tensors: dict[str, torch.Tensor]) -> Path:
    base = p.write(tmp_path / "base", BASE, p.weights_of(p.qwen_like(BASE, "llama")))
    assert base.is_dir()
    traits = {"format": 1, "attention": "block_causal", "block": 4, "mask_id": p.MASK}
    own = {**traits, "base": "base", "adapter": "adapter.safetensors", "end_ids": [p.END]}
    path = p.write(tmp_path / "ours", {"model_type": "llama", "weft_diffusion": own})
    adapter_file.write(path / "adapter.safetensors", tensors, alpha=6)
    return path


def test_an_adapter_changes_what_it_says(tmp_path: Path) -> None:
    tensors = changes()
    model = load(folders(tmp_path, tensors), EXACT)
    reference = p.qwen_like(BASE, "llama")
    with torch.no_grad():
        update = tensors[LAYER + ".lora_b"] @ tensors[LAYER + ".lora_a"]
        reference.model.layers[1].self_attn.q_proj.weight += 2 * update
        reference.model.norm.weight.copy_(tensors["model.norm.weight"])
        reference.model.embed_tokens.weight[p.MASK] = tensors["embedding_rows"][0]
    expected = slow.by_transformers(reference, IDS, 4)[1:, : p.MASK].numpy()
    np.testing.assert_allclose(predictions(model, IDS)[:, : p.MASK], expected, atol=5e-4, rtol=1e-4)
    assert model.preset == "threshold"
    assert model.traits.block == 4


def test_it_is_described_without_its_weights(tmp_path: Path) -> None:
    """Where a name leads to the base; an engine that takes folders as they are is told of none."""
    path = folders(tmp_path, changes())
    loaded = load(path, EXACT)
    there = describe(path, find=lambda name: path.parent / name)
    read = loaded.traits
    assert replace(there.traits, digest=read.digest, folder=read.folder) == read
    assert there.preset == loaded.preset
    with pytest.raises(CapabilityError, match="an adapter of base, and no whole model"):
        describe(path)


@pytest.mark.parametrize(
    ("name", "tensor", "said"),
    [
        (LAYER + ".lora_a", torch.ones(3, 31), "does not fit"),
        (LAYER + ".lora_a", torch.ones(32), "does not fit"),
        (LAYER + ".lora_a", torch.full((3, 32), float("nan")), "finite"),
        (LAYER + ".lora_b", torch.ones(32, 4), "does not fit"),
        ("model.layers.9.mlp.up_proj.lora_a", torch.ones(3, 32), "no layer"),
        ("model.layers.0.mlp.up_proj.lora_a", torch.ones(3, 32), "beside"),
        ("model.layers.0.mlp.up_proj.lora_b", torch.ones(48, 3), "beside"),
        ("model.norm.weight", torch.ones(31), "no parameter"),
        ("surprise", torch.ones(1), "no parameter"),
        ("embedding_ids", torch.tensor([p.VOCABULARY]), "ids that are not"),
        ("embedding_ids", torch.tensor([1, 2]), "embedding_rows is"),
        ("embedding_ids", torch.tensor([1.0]), "no list"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    name: str, tensor: torch.Tensor, said: str, tmp_path: Path
) -> None:
    path = folders(tmp_path, changes() | {name: tensor})
    with pytest.raises(CapabilityError, match=said):
        load(path, EXACT)


@pytest.mark.parametrize(
    "notes", [{}, {"format": "pt"}, {"format": "weft-lora"}, {"format": "weft-lora", "alpha": "x"}]
)
def test_a_file_of_another_kind_is_no_adapter(notes: dict[str, str], tmp_path: Path) -> None:
    path = folders(tmp_path, changes())
    tensor_file.write(path / "adapter.safetensors", changes(), notes)
    with pytest.raises(CapabilityError, match="no adapter"):
        load(path, EXACT)


def test_a_missing_adapter_is_told(tmp_path: Path) -> None:
    path = folders(tmp_path, changes())
    (path / "adapter.safetensors").unlink()
    with pytest.raises(CapabilityError, match=r"adapter\.safetensors"):
        load(path, EXACT)


def test_a_base_that_is_another_model_is_refused(tmp_path: Path) -> None:
    path = folders(tmp_path, changes())
    target = asdict(Fingerprint.of(BaseModelTarget(p.qwen_like(BASE, "llama"))))
    told(path, target)
    assert load(path, EXACT).traits.block == 4
    told(path, target | {"digest": "0" * 64})
    with pytest.raises(CapabilityError, match=r"target\.digest.*another model"):
        load(path, EXACT)
    told(path, target | {"vocab_size": "many"})
    with pytest.raises(CapabilityError, match=r"target\.vocab_size"):
        load(path, EXACT)


def told(path: Path, target: dict[str, Any]) -> None:
    """Write for which model the adapter in `path` is."""
    config = json.loads((path / "config.json").read_text())
    config["weft_diffusion"]["target"] = target
    (path / "config.json").write_text(json.dumps(config))


def test_a_base_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = folders(tmp_path, changes())
    p.write(tmp_path / "base", p.LLADA)
    with pytest.raises(CapabilityError, match="no base of an adapter"):
        load(path, EXACT)
