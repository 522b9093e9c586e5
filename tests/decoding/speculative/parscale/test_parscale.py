"""A text in several streams: drafts or none, the same; one bare stream is the plain model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from safetensors.torch import save_file
from torch.nn.functional import silu

from tests.decoding.speculative.drawn import walked
from tests.decoding.speculative.toy import Wild
from tests.serving.local.playback import EXACT
from weft.core.errors import CapabilityError
from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.speculative.chance import Keyed
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafters.lookup import Lookup
from weft.decoding.speculative.drafters.model.cache import DraftCache
from weft.decoding.speculative.drafters.model.drafter import ModelDrafts
from weft.decoding.speculative.law import Shaping
from weft.decoding.speculative.lengths import Always
from weft.decoding.speculative.loop import Decoding, Limits
from weft.decoding.speculative.method import Method, Single
from weft.decoding.speculative.network_target import NetworkTarget
from weft.decoding.speculative.speculation import Speculation
from weft.decoding.speculative.tree import ROOT, DraftTree
from weft.decoding.speculative.variants.parscale.published import load_streams
from weft.decoding.speculative.variants.parscale.streams import Streams
from weft.decoding.speculative.variants.parscale.target import ParScaleTarget
from weft.decoding.speculative.walk import Walk

PROMPT = (5, 60, 61, 62, 7, 60, 61, 62, 7, 60, 61)
SHAPINGS = (Shaping(0.0), Shaping(0.8, top_p=0.9))


def streams(count: int, prefix: int) -> Streams:
    return Streams.random(count, prefix, layers=3, kv_heads=2, head_dim=8, width=48, seed=1)


@pytest.fixture(scope="module")
def network(tiny_path: Path) -> Network:
    return Network.load(tiny_path, EXACT)


def begun(network: Network, learned: Streams, shaping: Shaping = SHAPINGS[0]) -> ParScaleTarget:
    target = ParScaleTarget(network, learned, shaping, slot=2)
    assert len(list(target.begin(PROMPT))) == 1
    return target


def written(network: Network, learned: Streams, shaping: Shaping, method: Method) -> Decoding:
    speculation = Speculation(method, network.vocabulary_size)
    speculation.extend(PROMPT)
    return Decoding(begun(network, learned, shaping), speculation, Keyed(4), Limits(30))


def plain() -> Method:
    return Single("plain", lambda: Lookup(), lambda: Always(0))


@pytest.mark.parametrize("shaping", SHAPINGS)
def test_one_stream_without_a_prefix_is_the_plain_model(network: Network, shaping: Shaping) -> None:
    target = NetworkTarget(network, shaping)
    list(target.begin(PROMPT))
    speculation = Speculation(plain(), network.vocabulary_size)
    speculation.extend(PROMPT)
    expected = [t for step in Decoding(target, speculation, Keyed(4), Limits(30)) for t in step]
    found = [t for step in written(network, streams(1, 0), shaping, plain()) for t in step]
    assert found == expected


def test_streams_and_prefixes_change_what_is_written(network: Network) -> None:
    texts = {
        tuple(t for step in written(network, learned, SHAPINGS[0], plain()) for t in step)
        for learned in (streams(1, 0), streams(2, 0), streams(2, 4), streams(3, 4))
    }
    assert len(texts) == 3, "two streams alike are one stream"


@pytest.mark.parametrize("shaping", SHAPINGS)
@pytest.mark.parametrize("count", [2, 4])
def test_drafts_change_nothing(network: Network, shaping: Shaping, count: int) -> None:
    learned = streams(count, 5)
    expected = [t for step in written(network, learned, shaping, plain()) for t in step]
    one = DraftCache(network.share(network.layers), network.vocabulary_size)
    drafts: list[Method] = [
        Single("wild", lambda: Wild(3), lambda: Always(8)),
        Single("lookup", Lookup, lambda: Always(6)),
        ModelDrafts("one stream", one, network.vocabulary_size, 4),
    ]
    for method in drafts:
        decoding = written(network, learned, shaping, method)
        assert [t for step in decoding for t in step] == expected, method.name
        assert decoding.speculation.fallback is None
        assert decoding.counters.drafted > 0


@given(walked(40))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_kept_of_a_draft_is_what_reading_it_would_have_left(
    network: Network, drawn: tuple[DraftTree, Walk]
) -> None:
    tree, walk = drawn
    learned = streams(3, 4)
    target = begun(network, learned)
    target.verify(Draft(tree))
    target.commit(walk)
    text = (*PROMPT, *walk.tokens(tree))
    assert target.tokens == list(text)
    law = target.verify(Draft())(ROOT)
    kept = [network.column(slot, 4 + at) for slot in (2, 3, 4) for at in range(len(text))]
    afresh = ParScaleTarget(network, learned, SHAPINGS[0], slot=2)
    list(afresh.begin(text))
    assert law == pytest.approx(afresh.verify(Draft())(ROOT))
    read = [network.column(slot, 4 + at) for slot in (2, 3, 4) for at in range(len(text))]
    worst = max(float((a - b).abs().max()) for a, b in zip(kept, read, strict=True))
    assert worst < 2e-5


def test_a_prefix_takes_no_positions(network: Network) -> None:
    """The first layer's keys depend on the position alone, so they are those of the plain text."""
    begun(network, streams(2, 7))
    behind = network.column(3, 7 + 4)[0, 0]
    network.forward([Span(9, range(5), PROMPT[:5], 0)])
    torch.testing.assert_close(behind, network.column(9, 4)[0, 0])


def test_the_mixing_as_it_is_written() -> None:
    learned = streams(3, 0)
    hidden = torch.randn(3, 2, 48, generator=torch.Generator().manual_seed(5))
    for row in range(2):
        inputs = torch.tensor([float(hidden[s, row, w]) for w in range(48) for s in range(3)])
        scores = learned.outer @ silu(learned.inner @ inputs)
        weights = scores.softmax(0) * 0.99 + 0.01 / 3
        expected = sum(weights[s] * hidden[s, row] for s in range(3))
        torch.testing.assert_close(learned.mixed(hidden)[row], expected)


def saved(path: Path, learned: Streams) -> dict[str, torch.Tensor]:
    tensors = {
        "model.aggregate_layer.0.weight": learned.inner,
        "model.aggregate_layer.0.bias": learned.inner_bias,
        "model.aggregate_layer.2.weight": learned.outer,
        "model.aggregate_layer.2.bias": learned.outer_bias,
    }
    for layer in range(learned.keys.shape[1]):
        name = f"model.layers.{layer}.self_attn.prefix"
        tensors[f"{name}_k"] = learned.keys[:, layer].contiguous()
        tensors[f"{name}_v"] = learned.values[:, layer].contiguous()
    save_file(tensors, path)
    return tensors


def test_streams_are_read_from_a_file(tmp_path: Path) -> None:
    learned, path = streams(2, 3), tmp_path / "model.safetensors"
    tensors = saved(path, learned)
    read = load_streams(path, 3)
    for name in ("keys", "values", "inner", "inner_bias", "outer", "outer_bias"):
        torch.testing.assert_close(getattr(read, name), getattr(learned, name))
    with pytest.raises(CapabilityError, match="no ParScale model of 4 layers"):
        load_streams(path, 4)
    save_file({**tensors, "model.aggregate_layer.2.weight": torch.zeros(5, 48)}, path)
    with pytest.raises(CapabilityError, match="holds no streams"):
        load_streams(path, 3)
    path.write_bytes(b"{")
    with pytest.raises(CapabilityError, match="cannot be read"):
        load_streams(path, 3)


def test_a_drafter_that_looks_at_layers_is_told_that_there_are_none(network: Network) -> None:
    target = begun(network, streams(2, 3))
    with pytest.raises(CapabilityError, match="no single states"):
        target.verify(Draft(), (1,))
