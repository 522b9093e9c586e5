"""Every published family, decoded: slot by slot, as its slow reference forward says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.decoding.diffusion.models import published as p
from tests.decoding.diffusion.models import slow
from tests.decoding.diffusion.models.test_published import EXACT, KINDS
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.catalogue import decoder_config
from weft.decoding.diffusion.denoising import denoise_text
from weft.decoding.diffusion.models import load
from weft.decoding.diffusion.models.loading import DiffusionModel
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.sampling import CounterRng
from weft.decoding.vocabularies import ModelPair, check_sizes

Forward = Callable[[list[int]], torch.Tensor]
PROMPTS = ([5, 9, 17, 33, 4], [28, 50, 12, 7, 41, 8, 19, 22, 6])
ROOM = 14


def qwen_like(kind: str, folder: Path) -> tuple[DiffusionModel, Forward]:
    config, body, _, block, _ = KINDS[kind]
    reference = p.qwen_like(config, body)
    model = load(p.write(folder, config, p.weights_of(reference)), EXACT)
    return model, lambda ids: slow.by_transformers(reference, ids, block)


def llada(kind: str, folder: Path) -> tuple[DiffusionModel, Forward]:
    weights = p.llada_weights(p.LLADA)
    model = load(p.write(folder, p.LLADA, weights), EXACT)
    return model, lambda ids: slow.llada(p.LLADA, weights, ids)


def llada2(kind: str, folder: Path) -> tuple[DiffusionModel, Forward]:
    config = p.LLADA2 | {"block_size": 4}
    weights = p.llada2_weights(config)
    model = load(p.write(folder, config, weights), EXACT)
    return model, lambda ids: slow.llada2(config, weights, ids, 4)


MAKE: dict[str, Callable[[str, Path], tuple[DiffusionModel, Forward]]] = {
    **dict.fromkeys((kind for kind in KINDS if kind != "ours"), qwen_like),
    "llada": llada,
    "llada2": llada2,
}


def by_hand(model: DiffusionModel, forward: Forward, prompt: list[int]) -> list[int]:
    """The likeliest token of the leftmost mask, again and again, up to an end token."""
    ids = [*prompt, *[p.MASK] * ROOM]
    for slot in range(len(prompt), len(ids)):
        row = slow.aligned(forward(ids), shifted=model.traits.shifted)[slot].clone()
        row[sorted(model.traits.banned)] = -torch.inf
        ids[slot] = int(row.argmax())
        if ids[slot] in model.traits.end_ids:
            return ids[len(prompt) : slot]
    return ids[len(prompt) :]


@pytest.mark.parametrize("kind", MAKE)
def test_a_published_model_writes_what_its_reference_writes(kind: str, tmp_path: Path) -> None:
    model, forward = MAKE[kind](kind, tmp_path / "model")
    config = decoder_config("sequential", model.traits, {})
    for prompt in PROMPTS:
        model.network.reset()
        adapter = NetworkAdapter(model.network, model.traits)
        row = denoise_text(adapter, Canvas(prompt, ROOM, p.MASK), config, CounterRng(0))
        found = [token for token in row.kept.tolist() if token not in model.traits.end_ids]
        assert found == by_hand(model, forward, prompt)


@pytest.mark.parametrize("kind", MAKE)
def test_its_own_decoder_ends_and_writes_no_mask(kind: str, tmp_path: Path) -> None:
    model, _ = MAKE[kind](kind, tmp_path / "model")
    config = decoder_config(model.preset, model.traits, {})
    adapter = NetworkAdapter(model.network, model.traits)
    row = denoise_text(adapter, Canvas(PROMPTS[0], ROOM, p.MASK), config, CounterRng(0))
    assert row.over
    assert not model.traits.banned.intersection(row.kept.tolist())


# vocab_size of Dream-org/Dream-v0-Instruct-7B, and of the Qwen2.5-1.5B-Instruct beside it
DREAM, SUPERVISOR = 152_064, 151_936


def test_dream_takes_a_supervisor_of_the_smaller_published_vocabulary(tmp_path: Path) -> None:
    """FlashDLM's pair (arXiv 2505.21467): the tables differ by padding rows only."""
    check_sizes(DREAM, SUPERVISOR, ModelPair("supervisor", "diffusion model"))
    config: dict[str, Any] = p.DREAM | {"vocab_size": DREAM, "hidden_size": 8}
    config |= {"num_attention_heads": 2, "intermediate_size": 8, "num_hidden_layers": 1}
    config |= {"num_key_value_heads": 1, "mask_token_id": 151_666, "eos_token_id": 151_643}
    reference = p.qwen_like(config, "qwen2")
    model = load(p.write(tmp_path / "dream", config, p.weights_of(reference)), EXACT)
    assert model.network.vocabulary_size == DREAM
    assert (model.traits.mask_id, model.traits.end_ids) == (151_666, {151_643})
