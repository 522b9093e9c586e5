"""Caches that trust old keys: how wrong they are is told, and no row suffers from another's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from evals.diffusion.cache_error import Gauge
from tests.decoding.diffusion.network.small import (
    BLOCKS,
    FULL,
    MASK,
    SHIFTED,
    SHIFTED_BLOCKS,
    llama,
    network,
    part,
    recording,
    text,
    whole,
)
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.catalogue import decoder_config
from weft.decoding.diffusion.denoising import GREEDY, DenoisingRow, denoise_all
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.diffusion.preset import Options
from weft.decoding.diffusion.query import RefreshCandidates
from weft.decoding.network.network import Network
from weft.decoding.sampling import CounterRng

CACHED = {
    "fastdllm_prefix": {},
    "fastdllm_dual": {"factor": 1.0},
    "freecache": {"ahead": 4},
    "delayed": {"refresh": 4},
    "interval": {"answer": 3},
    "vicinity": {"slots": 2, "warm_up": 1},
}
ALL: list[tuple[str, Options, ModelTraits]] = [
    *((name, options, traits) for name, options in CACHED.items() for traits in (FULL, SHIFTED)),
    *(
        (name, {}, traits)
        for name in ("sdar", "fastdllm_v2")
        for traits in (BLOCKS, SHIFTED_BLOCKS)
    ),
    ("fastdllm_v2", {"block": 2, "inside": "dual"}, SHIFTED_BLOCKS),
    ("sdar", {"store": "joined"}, FULL),
]


@pytest.fixture(scope="module")
def net() -> Network:
    return network(llama())


def begun(name: str, options: Options, traits: ModelTraits, row: int) -> DenoisingRow:
    """Different lengths, so that rows are at different steps and blocks."""
    canvas = Canvas(text(5 + 2 * row, row), 12 - 3 * row, MASK, row=row)
    size = {} if "block" in options or traits.block else {"block": 5}
    plugs = decoder_config(name, traits, {"threshold": 0.4, **size, **options})
    return DenoisingRow(canvas, plugs, traits, CounterRng(row), GREEDY)


@pytest.mark.parametrize(("name", "options", "traits"), ALL)
def test_rows_are_written_as_if_they_were_alone(
    net: Network, name: str, options: Options, traits: ModelTraits
) -> None:
    rows = [begun(name, options, traits, row) for row in range(3)]
    together = recording(net, traits)
    denoise_all(rows, together)
    for number, row in enumerate(rows):
        alone = begun(name, options, traits, number)
        apart = recording(net, traits)
        denoise_all([alone], apart)
        assert alone.kept.tolist() == row.kept.tolist()
        assert alone.counters.order == row.counters.order
        assert alone.counters.passes == row.counters.passes
        ours = [
            answer
            for queries, answers in zip(together.passes, together.answers, strict=True)
            for query, answer in zip(queries, answers, strict=True)
            if query.canvas.row == number
        ]
        for one, two in zip(ours, (answers[0] for answers in apart.answers), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CACHED)
def test_a_stale_cache_tells_its_error(net: Network, name: str) -> None:
    gauge = Gauge(NetworkAdapter(net, FULL))
    row = begun(name, CACHED[name], FULL, 0)
    denoise_all([row], gauge)
    none = begun("threshold", {}, FULL, 0)
    denoise_all([none], NetworkAdapter(net, FULL))
    assert gauge.error.largest > 1e-3
    assert len(gauge.error.by_pass) == row.counters.forwards
    assert (
        row.counters.tokens / row.counters.forwards < none.counters.tokens / none.counters.forwards
    )


def test_what_has_moved_most_is_read(net: Network) -> None:
    adapter = NetworkAdapter(net, FULL)
    rows = [Canvas(text(5), 12, MASK, row=row) for row in (0, 1)]
    adapter.forward([whole(rows[0])])
    for canvas in rows:
        canvas.commit([6, 7], [3, 4])
    adapter.forward([whole(rows[1])])
    others = np.array([5, *range(8, 17)])
    kept, now = (net.values(row, 1, others.tolist()) for row in (0, 1))
    moved = others[np.argsort(torch.cosine_similarity(now, kept).numpy())]
    before = [net.column(0, slot) for slot in range(17)]
    query = part(rows[0], [6, 7], [], choice=RefreshCandidates(others, 4))
    assert query.tokens == 6
    adapter.forward([query, part(rows[1], [16], [16])])
    read = [slot for slot in range(17) if (net.column(0, slot) != before[slot]).any()]
    assert read == sorted([6, 7, *moved[:4].tolist()])
