from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.serving.local.playback import EXACT, Playback
from weft.serving.local import LocalOptions

if TYPE_CHECKING:
    from weft.decoding.diffusion.models.loading import DiffusionModel

if find_spec("torch") is None:  # without the `local` extra there is nothing to test
    collect_ignore_glob = ["test_*.py"]

Playing = Callable[..., Playback]


@pytest.fixture(scope="session", params=["full", "block_causal"])
def masked_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a tiny diffusion model, of either kind of attention."""
    from tests.serving.local.diffusion import tiny

    return tiny.make(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture(scope="session")
def masked(masked_path: Path) -> DiffusionModel:
    from weft.decoding.diffusion.models import load

    return load(masked_path, EXACT)


@pytest.fixture
def play(masked: DiffusionModel, masked_path: Path) -> Playing:
    """A fresh batcher of the tiny model, stepped by hand."""
    from weft.decoding.diffusion.network_adapter import NetworkAdapter
    from weft.serving.local.diffusion.batcher import DiffusionBatcher
    from weft.serving.local.diffusion.intake import DiffusionIntake
    from weft.serving.local.vocabulary import Vocabulary

    vocabulary = Vocabulary.load(masked_path, masked.traits.vocabulary, masked.traits.end_ids)

    def make(options: LocalOptions = EXACT, model: DiffusionModel = masked) -> Playback:
        model.network.reset()
        adapter = NetworkAdapter(model.network, model.traits)
        intake = DiffusionIntake(model, vocabulary, options, "tiny")
        return Playback(DiffusionBatcher(adapter, intake, options))

    return make
