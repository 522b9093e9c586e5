"""`pytest -m gpu`: what the fake device and recorded graphs stand in for, on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from evals.gpu.bench import real_bench
from evals.gpu.sections import SECTIONS, failed, found_by
from tests.decoding.devices.test_host_copies import MIXED
from tests.decoding.devices.test_pass_graphs import ASKED
from tests.decoding.speculative.decoder_fixtures import options_for
from tests.serving.local.playback import EXACT, Playback
from weft.core.ports import ModelRequest
from weft.core.values import AUTOREGRESSIVE, Completion, Lossless, Lossy
from weft.decoding.device_sampling import TokenDraws, choose_tokens
from weft.decoding.network.network import Network
from weft.decoding.sampling import SamplingParams
from weft.decoding.speculative.presets import NAMES, preset
from weft.serving.local import LocalOptions
from weft.serving.local.autoregressive.batcher import Batcher
from weft.serving.local.vocabulary import Vocabulary

pytestmark = pytest.mark.gpu

Make = Callable[[LocalOptions], tuple[Playback, Network]]


@pytest.fixture
def engine(cuda: str, tiny_path: Path, vocabulary: Vocabulary) -> Make:
    """The tiny model there, with its network."""

    def make(options: LocalOptions) -> tuple[Playback, Network]:
        network = Network.load(tiny_path, replace(options, device=cuda))
        return Playback(Batcher(network, vocabulary, options, "tiny")), network

    return make


def written(playback: Playback, asked: tuple[ModelRequest, ...]) -> list[Completion]:
    heard = [playback.add(one) for one in asked]
    playback.finish()
    playback.batcher.close()
    return [one.completion for one in heard]


def ids(found: list[Completion]) -> list[tuple[int, ...]]:
    return [one.token_ids for one in found]


def test_a_gpu_chooses_the_tokens_of_the_cpu(cuda: str) -> None:
    scores = torch.randn(64, 5000, generator=torch.Generator().manual_seed(0)) * 3
    numbers = torch.rand(64, generator=torch.Generator().manual_seed(1)).double().tolist()
    kinds = (
        SamplingParams(0.0),
        SamplingParams(1.0),
        SamplingParams(0.7, top_p=0.9),
        SamplingParams(1.2, top_k=40, min_p=0.01),
    )
    draws = [TokenDraws(kinds[n % 4], (number,)) for n, number in enumerate(numbers)]
    assert choose_tokens(scores.to(cuda), draws) == choose_tokens(scores, draws)


def test_graphs_are_made_and_write_what_passes_write(engine: Make) -> None:
    graphed, network = engine(EXACT)
    plain, without = engine(replace(EXACT, graphs="off"))
    assert without.graphs is None
    assert ids(written(graphed, ASKED)) == ids(written(plain, ASKED))
    assert network.graphs is not None
    assert network.graphs.fallback is None
    assert network.graphs.replays > 20


def test_rows_sample_as_on_the_cpu(engine: Make, play: Callable[..., Playback]) -> None:
    there, _ = engine(EXACT)
    assert ids(written(there, MIXED)) == ids(written(play(EXACT), MIXED))


@pytest.mark.parametrize("name", NAMES)
def test_a_decoder_drafts_there(name: str, engine: Make, tiny_path: Path, tmp_path: Path) -> None:
    given = options_for(name, Network.load(tiny_path, EXACT), tiny_path, tmp_path / "drafter")
    spec = (Lossless if preset(name).lossless else Lossy)(name, tuple(given.items()))
    playback, network = engine(EXACT)
    found = written(playback, tuple(replace(one, decode=spec) for one in ASKED[1:]))
    assert [one.speculation.fallback for one in found if one.speculation] == ["", ""]
    assert network.graphs is not None
    assert network.graphs.fallback is None
    if preset(name).lossless:
        plain, _ = engine(EXACT)
        asked = tuple(replace(one, decode=AUTOREGRESSIVE) for one in ASKED[1:])
        assert ids(found) == ids(written(plain, asked))


@pytest.mark.parametrize(
    "section", [name for name in SECTIONS if name not in ("vllm", "strategies")]
)
def test_a_section_of_the_evaluation_runs(section: str, cuda: str) -> None:
    assert cuda
    with real_bench("", 1) as bench:
        _, rows = found_by(section, bench)
    assert any(row.value is not None for row in rows)
    assert not failed(rows)
