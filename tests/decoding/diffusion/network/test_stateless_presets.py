"""Presets without a memory on networks with random weights: they end, whatever their batch."""

from __future__ import annotations

import numpy as np
import pytest

from tests.decoding.diffusion.network.small import FULL, MASK, PROMPT, SHIFTED_BLOCKS, network
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.catalogue import decoder_config
from weft.decoding.diffusion.denoising import DenoisingRow, denoise_all
from weft.decoding.diffusion.guidance.logits import ClassifierFreeGuidance
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.diffusion.preset import Options
from weft.decoding.diffusion.query import Query
from weft.decoding.network.network import Network
from weft.decoding.sampling import CounterRng, SamplingParams

KINDS = {"full": FULL, "shifted blocks": SHIFTED_BLOCKS}
PRESETS: tuple[tuple[str, Options], ...] = (
    *((name, {}) for name in ("sequential", "llada", "random", "dilated", "dream_origin")),
    *((name, {}) for name in ("dream_maskgit", "dream_margin", "dream_entropy", "dimple")),
    *((name, {}) for name in ("threshold", "factor", "entropy_threshold", "entropy_bound")),
    ("llada", {"guidance": 1.0}),
)


@pytest.fixture(scope="module")
def random_weights() -> Network:
    return network()


def texts(name: str, options: Options, traits: ModelTraits, which: list[int]) -> list[DenoisingRow]:
    """Of different lengths, in rows of the cache that are their own."""
    plugs = decoder_config(name, traits, options)
    return [
        DenoisingRow(
            Canvas(PROMPT[: 5 - n], 6 + n, MASK, row=n),
            plugs,
            traits,
            CounterRng(n),
            SamplingParams(),
        )
        for n in which
    ]


@pytest.mark.parametrize("traits", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(("name", "options"), PRESETS)
def test_a_preset_ends_and_writes_the_same_alone(
    name: str, options: Options, traits: ModelTraits, random_weights: Network
) -> None:
    together = texts(name, options, traits, [0, 1])
    denoise_all(together, NetworkAdapter(random_weights, traits))
    alone = texts(name, options, traits, [1])
    denoise_all(alone, NetworkAdapter(random_weights, traits))

    assert alone[0].kept.tolist() == together[1].kept.tolist()
    assert alone[0].counters == together[1].counters
    for row in together:
        assert row.finish in ("length", "stop")
        assert MASK not in row.kept


def test_guidance_reads_beside_the_cache(random_weights: Network) -> None:
    """What it asks is answered as a text without a prompt, and leaves the row's own as it was."""
    adapter = NetworkAdapter(random_weights, FULL)
    canvas = Canvas(PROMPT, 4, MASK)
    canvas.window = range(5, 9)
    slots = np.arange(9)
    query = Query(canvas, slots, canvas.open, 9)
    extra = ClassifierFreeGuidance(1.0).begin(canvas, FULL).asks(query)
    plain, beside = adapter.forward([query, extra])
    window = Query(canvas, slots[5:], canvas.open, 9)

    blank = Query(Canvas([MASK] * 5, 4, MASK, row=1), slots, canvas.open, 9)
    np.testing.assert_allclose(beside, adapter.forward([blank])[0], atol=1e-5)
    np.testing.assert_allclose(plain, adapter.forward([window])[0], atol=1e-5)
    assert np.abs(plain[:, :MASK] - beside[:, :MASK]).max() > 0.1
