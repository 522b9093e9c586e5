from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.serving.local import embedded
from tests.serving.local.playback import EXACT, Playback
from weft.core.errors import ModelNotFound
from weft.serving.local import LocalOptions
from weft.serving.weights import locate

if TYPE_CHECKING:
    from weft.decoding.network.network import Network
    from weft.serving.local.vocabulary import Vocabulary

if find_spec("torch") is None:  # without the `local` extra there is nothing to test
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def tiny_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.serving.local import tiny

    return tiny.make(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def vocabulary(tiny_path: Path) -> Vocabulary:
    from weft.decoding.network.network import Network
    from weft.serving.local.vocabulary import Vocabulary

    network = Network.load(tiny_path, EXACT)
    return Vocabulary.load(tiny_path, network.vocabulary_size, network.generation.end_ids)


@pytest.fixture(scope="session")
def play(tiny_path: Path, vocabulary: Vocabulary) -> Callable[..., Playback]:
    """A fresh batcher of the tiny model, stepped by hand; it ends the one before."""
    from weft.decoding.network.network import Network
    from weft.serving.local.autoregressive.batcher import Batcher

    networks: dict[LocalOptions, Network] = {}

    def make(options: LocalOptions = EXACT) -> Playback:
        if options not in networks:
            networks[options] = Network.load(tiny_path, options)
        networks[options].reset()
        return Playback(Batcher(networks[options], vocabulary, options, "tiny"))

    return make


@pytest.fixture(scope="session")
def smollm2() -> Path:
    try:
        return locate(embedded.NAME)
    except ModelNotFound as missing:
        pytest.skip(str(missing))


@pytest.fixture
def smollm2_network(smollm2: Path) -> Network:
    """Its network, which holds nothing yet; other tests had it before, and others will."""
    network = embedded.network()
    network.reset()
    return network
