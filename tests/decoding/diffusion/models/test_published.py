"""Published folders, read back: same logits as a slow reference, under the right mask and shift."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from tests.decoding.diffusion.models import published as p
from tests.decoding.diffusion.models import slow
from weft.core.errors import CapabilityError
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.models import load
from weft.decoding.diffusion.models.loading import DiffusionModel
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.diffusion.query import Query
from weft.decoding.network.options import NetworkOptions

EXACT = NetworkOptions(dtype="float32", threads=1)
IDS = [5, 9, 17, 33, 4, 28, 50, 12, p.MASK, 7, p.MASK, p.MASK, 41, 8, p.MASK, 19, 22, 6]
# config, body, attention, block, shifted
KINDS: dict[str, tuple[dict[str, Any], str, str, int, bool]] = {
    "dream": (p.DREAM, "qwen2", "full", 0, True),
    "dimple": (p.DIMPLE, "qwen2", "full", 0, True),
    "sdar": (p.SDAR, "qwen3", "block_causal", 4, False),
    "fast_dllm_v2": (p.FAST_DLLM, "qwen2", "block_causal", 8, True),
    "a2d-llama": (p.a2d("llama") | {"mask_token_id": p.MASK}, "llama", "full", 0, False),
    "a2d-qwen2": (p.a2d("qwen2") | {"mask_token_id": p.MASK}, "qwen2", "full", 0, False),
    "a2d-qwen3": (p.a2d("qwen3") | {"mask_token_id": p.MASK}, "qwen3", "full", 0, False),
    "ours": (
        p.own("llama", attention="block_causal", block=6, shifted=True),
        "llama",
        "block_causal",
        6,
        True,
    ),
}


def predictions(model: DiffusionModel, ids: list[int]) -> np.ndarray:
    """[slots, vocabulary], aligned, through the adapter; one slot of prompt."""
    canvas = Canvas(ids[:1], len(ids) - 1, p.MASK)
    canvas.ids[:] = ids
    every = np.arange(len(ids))
    adapter = NetworkAdapter(model.network, model.traits)
    model.network.reset()
    return adapter.forward([Query(canvas, every, every[1:], len(ids))])[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_published_folder_predicts_as_its_reference(kind: str, tmp_path: Path) -> None:
    config, body, attention, block, shifted = KINDS[kind]
    reference = p.qwen_like(config, body)
    folder = p.write(tmp_path / "model", config, p.weights_of(reference))
    model = load(folder, EXACT)
    traits = model.traits
    assert (traits.attention, traits.block, traits.shifted) == (attention, block, shifted)
    assert (traits.mask_id, traits.vocabulary) == (p.MASK, p.VOCABULARY)
    assert p.END in traits.end_ids
    found = predictions(model, IDS)
    raw = slow.by_transformers(reference, IDS, block)
    expected = slow.aligned(raw, shifted=shifted)[1:].numpy()
    kept = [token for token in range(p.VOCABULARY) if token not in traits.banned]
    np.testing.assert_allclose(found[:, kept], expected[:, kept], atol=2e-4, rtol=1e-4)
    assert (found[:, sorted(traits.banned)] == -np.inf).all()


def test_a_llada_predicts_as_its_description(tmp_path: Path) -> None:
    config = p.LLADA | {"n_kv_heads": 2}
    weights = p.llada_weights(config)
    model = load(p.write(tmp_path / "llada", config, weights), EXACT)
    expected = slow.llada(config, weights, IDS)[1:].numpy()
    found = predictions(model, IDS)
    kept = [token for token in range(p.VOCABULARY) if token != p.MASK]
    np.testing.assert_allclose(found[:, kept], expected[:, kept], atol=2e-4, rtol=1e-4)
    assert model.traits.attention == "full"
    assert not model.traits.shifted
    assert model.network.layers == 2
    assert model.network.context_tokens == 256


def test_weights_in_several_files_are_found_by_their_index(tmp_path: Path) -> None:
    weights = p.llada_weights(p.LLADA)
    folder = p.write(tmp_path / "llada", p.LLADA)
    names = sorted(weights)
    parts = {"model-1-of-2.safetensors": names[::2], "model-2-of-2.safetensors": names[1::2]}
    for file, part in parts.items():
        save_file({name: weights[name] for name in part}, folder / file, {"format": "pt"})
    places = {name: file for file, part in parts.items() for name in part}
    index = {"metadata": {"total_size": 0}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    expected = slow.llada(p.LLADA, weights, IDS)[1:, : p.MASK].numpy()
    found = predictions(load(folder, EXACT), IDS)[:, : p.MASK]
    np.testing.assert_allclose(found, expected, atol=2e-4, rtol=1e-4)


def made(kind: str, folder: Path) -> DiffusionModel:
    config, body, *_ = KINDS[kind]
    return load(p.write(folder, config, p.weights_of(p.qwen_like(config, body))), EXACT)


def changed(model: DiffusionModel, slot: int) -> np.ndarray:
    """Which slots from 1 on are predicted otherwise when the token of `slot` is another."""
    other = list(IDS)
    other[slot] = 30
    kept = [token for token in range(p.VOCABULARY) if token not in model.traits.banned]
    before, after = predictions(model, IDS)[:, kept], predictions(model, other)[:, kept]
    return np.abs(before - after).max(axis=1) > 1e-4


def test_all_slots_of_a_bidirectional_model_see_a_later_token(tmp_path: Path) -> None:
    assert changed(made("a2d-qwen3", tmp_path / "model"), 17).all()


def test_no_slot_of_a_block_causal_model_sees_a_later_block(tmp_path: Path) -> None:
    differs = changed(made("sdar", tmp_path / "model"), 13)  # in the block of slots 12 to 15
    assert differs.tolist() == [False] * 11 + [True] * 6


def test_a_shifted_block_begins_with_what_the_block_before_says(tmp_path: Path) -> None:
    differs = changed(made("fast_dllm_v2", tmp_path / "model"), 9)  # in the block of 8 to 15
    # slot 8 is predicted by the raw row of slot 7, which does not see slot 9
    assert differs.tolist() == [False] * 8 + [True] * 9


def test_a_shifted_slot_is_predicted_by_the_row_before_it(tmp_path: Path) -> None:
    config = p.DREAM
    reference = p.qwen_like(config, "qwen2")
    model = load(p.write(tmp_path / "dream", config, p.weights_of(reference)), EXACT)
    raw = slow.by_transformers(reference, IDS, 0)
    found = predictions(model, IDS)
    np.testing.assert_allclose(found[3, : p.MASK], raw[3, : p.MASK].numpy(), atol=2e-4, rtol=1e-4)
    assert not np.allclose(found[3, : p.MASK], raw[4, : p.MASK].numpy(), atol=1e-2)


def test_the_trained_positions_of_a_dream_are_fewer_than_its_config_says(tmp_path: Path) -> None:
    assert made("dream", tmp_path / "model").network.context_tokens == 2048


def test_the_vision_part_of_a_dimple_is_left_out_and_refused(tmp_path: Path) -> None:
    reference = p.qwen_like(p.DIMPLE, "qwen2")
    weights = p.weights_of(reference) | {"visual.patch_embed.proj.weight": torch.ones(4, 4)}
    tokens = {"<|image_pad|>": 55, "<|vision_start|>": 56, "<|im_end|>": p.OTHER_END}
    model = load(p.write(tmp_path / "dimple", p.DIMPLE, weights, tokens), EXACT)
    assert model.traits.banned == {p.MASK, 55, 56}
    assert model.traits.end_ids == {p.END, p.OTHER_END}
    model.check_prompt(IDS)
    with pytest.raises(CapabilityError, match="language part"):
        model.check_prompt([5, 55, 7])
