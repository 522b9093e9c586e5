"""A real model's text stays, and the drafters that come with weft for it are worth something."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from tests.decoding.speculative.rows import SHAPINGS, alone, plain
from weft.decoding.network.network import Network
from weft.decoding.sampling import SamplingParams
from weft.decoding.speculative.loop import DecodeLimits
from weft.decoding.speculative.presets import made

QUESTION = "Name three things that a library has, and say what each is for."


@pytest.mark.model
@pytest.mark.parametrize(
    ("name", "tokens_per_pass"),
    [
        ("lookahead", 1.0),
        ("eagle", 1.3),
        ("hidden_transfer", 1.1),
        ("lexical_units_verified", 1.1),
    ],
)
@pytest.mark.parametrize(
    "shapings",
    [
        pytest.param(SHAPINGS[:1], id="greedy"),
        pytest.param(SHAPINGS, id="both", marks=pytest.mark.slow),
    ],
)
def test_the_text_of_a_real_model_stays(
    smollm2: Path,
    smollm2_network: Network,
    name: str,
    tokens_per_pass: float,
    shapings: Sequence[SamplingParams],
) -> None:
    network = smollm2_network
    tokenizer = AutoTokenizer.from_pretrained(smollm2, local_files_only=True)
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": QUESTION}], add_generation_prompt=True, return_dict=False
    )
    method = made(name, network, {})
    limits = DecodeLimits(24, network.generation.end_ids)
    tokens, forwards = 0, 0
    for shaping in shapings:
        text, decoding = alone(network, prompt, method, shaping, 3, limits)
        assert text == plain(network, prompt, shaping, 3, limits)
        assert decoding.speculation.fallback is None
        tokens, forwards = tokens + len(text), forwards + decoding.counters.forwards
    assert tokens / forwards >= tokens_per_pass
