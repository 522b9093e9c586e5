"""Every preset writes with a network of every kind, and rows keep apart whatever they do."""

from __future__ import annotations

import pytest

from tests.decoding.diffusion.network.small import (
    BLOCKS,
    ENCODER,
    FULL,
    MASK,
    SHIFTED,
    SHIFTED_BLOCKS,
    VOCABULARY,
    llama,
    network,
    text,
)
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.catalogue import NAMES, decoder_config, preset
from weft.decoding.diffusion.denoising import DenoisingRow, denoise_all
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.network.network import Network
from weft.decoding.sampling import CounterRng, SamplingParams

KINDS = {
    "full": FULL,
    "shifted": SHIFTED,
    "blocks": BLOCKS,
    "shifted blocks": SHIFTED_BLOCKS,
    "encoder": ENCODER,
}
ALONE = [name for name in NAMES if not preset(name).needs]
SHAPING = SamplingParams(0.7)


@pytest.fixture(scope="module")
def net() -> Network:
    return network(llama(num_hidden_layers=1))


def begun(name: str, traits: ModelTraits, row: int) -> DenoisingRow:
    canvas = Canvas(text(3 + row % 3, row), 6 - row % 3, MASK, row=row)
    return DenoisingRow(canvas, decoder_config(name, traits, {}), traits, CounterRng(row), SHAPING)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_all_presets_share_passes(net: Network, kind: str) -> None:
    traits = KINDS[kind]
    rows = [begun(name, traits, number) for number, name in enumerate(ALONE)]
    denoise_all(rows, NetworkAdapter(net, traits))
    for number, row in enumerate(rows):
        alone = begun(ALONE[number], traits, number)
        denoise_all([alone], NetworkAdapter(net, traits))
        assert alone.kept.tolist() == row.kept.tolist(), ALONE[number]
        assert alone.counters == row.counters, ALONE[number]
        assert alone.over
        assert not alone.canvas.undecided[: alone.end].any()
        assert all(0 <= token < VOCABULARY and token != MASK for token in alone.kept.tolist())
