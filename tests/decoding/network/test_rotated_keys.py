"""Which models' keys can be seen from elsewhere: those whose positions are a plain rotation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    CohereConfig,
    CohereForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    SmolLM3Config,
    SmolLM3ForCausalLM,
)

from tests.decoding.network.test_network import altered
from tests.serving.local.playback import EXACT
from weft.core.errors import CapabilityError
from weft.decoding.network.network import Network

SMALL: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "pad_token_id": 1,
}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0}
ROPES = [
    {"rope_type": "default", "rope_theta": 5e5},
    {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0},
    YARN | {"original_max_position_embeddings": 256},  # scales keys by 1.14, once
    {
        "rope_type": "llama3",
        "rope_theta": 10000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 256,
    },
]


@pytest.mark.parametrize("rope", ROPES, ids=lambda rope: rope["rope_type"])
def test_rotations_that_depend_on_the_position_alone(
    tiny_path: Path, tmp_path: Path, rope: dict[str, Any]
) -> None:
    network = Network.load(altered(tiny_path, tmp_path / "m", rope_parameters=rope), EXACT)
    assert network.rotary().head_dim == 8


@pytest.mark.parametrize(
    "model",
    [
        # pairs next to each other, not in two halves
        (CohereConfig, CohereForCausalLM, SMALL),
        # every second layer has no positions
        (SmolLM3Config, SmolLM3ForCausalLM, {**SMALL, "no_rope_layers": [1, 0, 1, 0]}),
        # positions are read with the tokens
        (GPT2Config, GPT2LMHeadModel, {"vocab_size": 40, "n_embd": 32, "n_layer": 2, "n_head": 4}),
    ],
    ids=lambda model: model[1].__name__,
)
def test_other_positions_are_refused_with_the_reason(
    model: tuple[Any, Any, Any], tmp_path: Path
) -> None:
    config, kind, sizes = model
    torch.manual_seed(0)
    kind(config(**sizes)).save_pretrained(tmp_path)
    network = Network.load(tmp_path, EXACT)
    with pytest.raises(CapabilityError, match="no plain rotation"):
        network.rotary()


def test_looking_for_the_rotation_disturbs_no_row(tiny_path: Path) -> None:
    from weft.decoding.network.packing import Span

    found = []
    for looks in (False, True):
        network = Network.load(tiny_path, EXACT)
        network.forward([Span(0, range(3), (5, 6, 7), True)])
        if looks:
            network.rotary()
        found.append(network.forward([Span(0, (3,), (8,), True)])[0].logits[0])
    assert (found[0] == found[1]).all()
