"""Passes as graphs, recorded and replayed on the CPU: what they write is what passes write."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.decoding.devices.recorded_graph import capture
from tests.decoding.speculative.decoder_fixtures import options_for
from tests.serving.local.playback import EXACT, Playback, asking
from weft.core.ports import ModelRequest
from weft.core.values import AUTOREGRESSIVE, Completion, Lossless, Lossy
from weft.decoding.network import network as network_module
from weft.decoding.network import pass_graphs
from weft.decoding.network.cache import KvCache
from weft.decoding.network.network import Network
from weft.decoding.network.packing import PackedBatch, few_shapes, padding_for, whole_lanes
from weft.decoding.network.pass_graphs import Capture, GraphedPasses, capture_for
from weft.decoding.speculative.presets import NAMES, preset
from weft.serving.local import LocalOptions
from weft.serving.local.autoregressive.batcher import Batcher
from weft.serving.local.vocabulary import Vocabulary

PROMPT = (5, 60, 61, 62, 7, 60, 61, 62, 7, 60, 61)
LONG = asking(*range(3, 118), max_tokens=40)
"""It grows out of the cache's first 128 columns."""
ASKED = (
    LONG,
    asking(*PROMPT, max_tokens=30),
    asking(*PROMPT[:4], max_tokens=20, temperature=0.9, top_p=0.9, seed=3),
)
Make = Callable[..., Playback]


@pytest.fixture
def graphed(
    tiny_path: Path, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Playback, GraphedPasses]]:
    """A batcher of the tiny model whose passes are captured by `how`."""

    def make(how: Capture = capture) -> tuple[Playback, GraphedPasses]:
        monkeypatch.setattr(network_module, "capture_for", lambda _device: how)
        network = Network.load(tiny_path, EXACT)
        assert network.graphs is not None
        return Playback(Batcher(network, vocabulary, EXACT, "tiny")), network.graphs

    return make


Graphed = Callable[..., tuple[Playback, GraphedPasses]]


def written(playback: Playback, asked: Sequence[ModelRequest]) -> list[Completion]:
    heard = [playback.add(one) for one in asked]
    playback.finish()
    playback.batcher.close()
    return [one.completion for one in heard]


def ids(found: list[Completion]) -> list[tuple[int, ...]]:
    return [one.token_ids for one in found]


def test_graphs_write_what_passes_write(graphed: Graphed, play: Make) -> None:
    playback, graphs = graphed()
    assert ids(written(playback, ASKED)) == ids(written(play(EXACT), ASKED))
    assert graphs.fallback is None
    assert graphs.replays > 20, "most passes of a batch have a shape that was there before"


def test_a_replay_computes_the_same_bits(graphed: Graphed, monkeypatch: pytest.MonkeyPatch) -> None:
    playback, graphs = graphed()
    plain, replayed = graphs._decoder, graphs.logits
    compared = []

    def both(step: PackedBatch, cache: KvCache) -> torch.Tensor:
        before = graphs.replays
        found = replayed(step, cache)
        if graphs.replays > before:
            compared.append(torch.equal(found, plain.logits(step, cache)))
        return found

    monkeypatch.setattr(graphs, "logits", both)
    written(playback, ASKED)
    assert len(compared) > 20
    assert all(compared)


@pytest.mark.parametrize("name", NAMES)
def test_drafts_are_verified_by_graphs(
    name: str, graphed: Graphed, play: Make, tiny_path: Path, tmp_path: Path
) -> None:
    """Trees of drafts, what drafters see of layers, what they write there, networks of drafts."""
    playback, graphs = graphed()
    network = Network.load(tiny_path, EXACT)
    options = tuple(options_for(name, network, tiny_path, tmp_path / "drafter").items())
    spec = (Lossless if preset(name).lossless else Lossy)(name, options)
    asked = [replace(one, decode=spec) for one in ASKED[1:]]
    found = written(playback, asked)
    assert graphs.fallback is None
    assert [one.speculation.fallback for one in found if one.speculation] == ["", ""]
    if preset(name).lossless:
        plain = [replace(one, decode=AUTOREGRESSIVE) for one in asked]
        assert ids(found) == ids(written(play(EXACT), plain))


def test_without_graphs_passes_go_on(
    graphed: Graphed, play: Make, caplog: pytest.LogCaptureFixture
) -> None:
    def refuses(_run: Callable[[], None]) -> Callable[[], None]:
        raise RuntimeError("this device records nothing")

    playback, graphs = graphed(refuses)
    with caplog.at_level(logging.WARNING):
        assert ids(written(playback, ASKED)) == ids(written(play(EXACT), ASKED))
    assert graphs.fallback is not None
    assert "this device records nothing" in graphs.fallback.reason
    assert graphs.replays == 0
    assert len(caplog.records) == 1, "it is said once"


def test_a_look_at_the_host_cannot_be_recorded() -> None:
    value = torch.ones(1)
    with pytest.raises(RuntimeError, match="not permitted"):
        capture(lambda: value.item())


def test_a_graph_that_computes_something_else_is_never_used(graphed: Graphed, play: Make) -> None:
    def wrong(run: Callable[[], None]) -> Callable[[], None]:
        capture(run)  # and no replay: its results stay as CUDA leaves them
        return lambda: None

    playback, graphs = graphed(wrong)
    assert ids(written(playback, ASKED)) == ids(written(play(EXACT), ASKED))
    assert graphs.fallback is not None
    assert "differs from its pass" in graphs.fallback.reason


def test_few_graphs_are_kept(graphed: Graphed, play: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pass_graphs, "MOST_GRAPHS", 1)
    playback, graphs = graphed()
    assert ids(written(playback, ASKED)) == ids(written(play(EXACT), ASKED))
    assert len(graphs._graphs) <= 1
    assert graphs.fallback is None


def test_off_means_off(tiny_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_module, "capture_for", lambda _device: capture)
    assert Network.load(tiny_path, replace(EXACT, graphs="off")).graphs is None
    with pytest.raises(ValueError, match="graphs are one of auto, off"):
        LocalOptions(graphs="on")  # type: ignore[arg-type]


def test_a_cpu_has_no_graphs() -> None:
    assert capture_for(torch.device("cpu")) is None
    assert padding_for(torch.device("cpu")) is whole_lanes
    assert padding_for(torch.device("cuda")) is None


@pytest.mark.parametrize(("seen", "few"), [(1, 128), (128, 128), (129, 256), (1000, 1024)])
def test_answers_of_any_length_have_few_shapes(seen: int, few: int) -> None:
    assert few_shapes(seen, False) == few
    assert few_shapes(seen, True) == whole_lanes(seen, True)
