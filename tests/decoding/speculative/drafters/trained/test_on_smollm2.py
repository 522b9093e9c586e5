"""The drafters that come with weft, on the model that they were trained for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.decoding.speculative.rows import SHAPINGS, alone, plain
from weft.decoding.network.network import Network
from weft.decoding.sampling import SamplingParams
from weft.decoding.speculative.loop import DecodeLimits
from weft.decoding.speculative.presets import made
from weft.training.prompts import Tokenizer

pytestmark = pytest.mark.model
SIZES: dict[str, dict[str, int | str]] = {
    "medusa": {"num_speculative_tokens": 16},
    "ppd": {"rows": 16},
    "pass": {"below": "every"},
}


@pytest.fixture(scope="module")
def prompt(smollm2: Path) -> tuple[int, ...]:
    asked = "List three reasons to keep a garden, and two against it."
    return Tokenizer(smollm2).encode((("user", asked),))


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize(
    "shaping",
    [
        pytest.param(SHAPINGS[0], id="greedy"),
        pytest.param(SHAPINGS[1], id="nucleus", marks=pytest.mark.slow),
    ],
)
def test_the_text_stays_and_takes_fewer_passes(
    smollm2_network: Network, prompt: tuple[int, ...], name: str, shaping: SamplingParams
) -> None:
    network = smollm2_network
    limits = DecodeLimits(24, network.generation.end_ids)
    method = made(name, network, SIZES[name])
    text, decoding = alone(network, prompt, method, shaping, 3, limits)
    assert text == plain(network, prompt, shaping, 3, limits)
    assert decoding.speculation.fallback is None
    assert decoding.counters.tokens > decoding.counters.forwards
