"""SmolLM2 as a diffusion model with its own causal self as the supervisor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from tests.decoding.diffusion.network.small import EXACT
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.catalogue import decoder_config
from weft.decoding.diffusion.denoising import DenoisingRow, denoise_text
from weft.decoding.diffusion.models.loading import DiffusionModel, load
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.sampling import CounterRng
from weft.training.diffusion.block.corpora import ConversationEncoder
from weft.training.diffusion.block.learner import LoraLearner

QUESTION = "Name the capital of France."
TOKENS = 10


def before_training(smollm2: Path, folder: Path, block: int) -> DiffusionModel:
    mask, end = ConversationEncoder(smollm2).mask, ConversationEncoder(smollm2).end
    told: Mapping[str, object] = {
        "format": 1,
        "attention": "block_causal",
        "block": block,
        "shifted": True,
        "mask_id": mask,
        "end_ids": [end],
    }
    folder.mkdir()
    LoraLearner(smollm2, "cpu", 1, mask).save(folder, told)
    return load(folder, EXACT, find=lambda _name: smollm2)


def text(model: DiffusionModel, prompt: list[int], name: str, **options: str) -> DenoisingRow:
    plugs = decoder_config(name, model.traits, options)
    canvas = Canvas(prompt, TOKENS, model.traits.mask_id or 0)
    return denoise_text(NetworkAdapter(model.network, model.traits), canvas, plugs, CounterRng(0))


@pytest.mark.model
def test_flashdlm_from_end_to_end(smollm2: Path, smollm2_network: Network, tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(smollm2, local_files_only=True)
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": QUESTION}], add_generation_prompt=True, return_dict=False
    )
    causal = smollm2_network
    plain = list(prompt)
    while len(plain) < len(prompt) + TOKENS and plain[-1] not in causal.generation.end_ids:
        read = causal.forward([Span(0, range(len(plain)), plain, 1)])[0]
        plain.append(int(read.logits[-1].argmax()))
    answer = [token for token in plain[len(prompt) :] if token not in causal.generation.end_ids]

    # blocks of one slot are what the model could do before: all of it passes
    single = before_training(smollm2, tmp_path / "single", 1)
    row = text(single, prompt, "flashdlm", supervisor=str(smollm2), rule="exact")
    assert row.kept.tolist() == answer
    assert row.counters.passes["supervisor"] == row.counters.forwards >= len(answer)

    # what longer blocks draft before they are learnt is seldom likely: it is slow, and no veto
    four = before_training(smollm2, tmp_path / "four", 4)
    row = text(four, prompt, "flashdlm", supervisor=str(smollm2))
    assert row.counters.commits >= row.counters.kept > 0
    slots = [slot for _, slot in row.counters.order]
    assert slots == sorted(slots)
    assert 0 < row.counters.passes["supervisor"] <= row.counters.forwards
