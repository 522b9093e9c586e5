"""Every diffusion decoder in the local engine on another device than the CPU: the same text."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from tests.decoding.devices.decoder_requirements import GIVEN
from tests.fake_device import operations
from tests.serving.local.playback import EXACT, Playback
from weft.core.ports import ModelRequest, Sampling
from weft.core.values import Lossless, Lossy
from weft.decoding.diffusion.catalogue import NAMES, decoder_config, preset
from weft.decoding.diffusion.guidance.supervisor import CausalSupervisor
from weft.decoding.diffusion.models.loading import load
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.serving.local import LocalOptions
from weft.serving.local.diffusion.batcher import DiffusionBatcher
from weft.serving.weights import locate

HERE = replace(EXACT, canvas_tokens=8)
MODELS = ("list-full", pytest.param("list-block", marks=pytest.mark.slow))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("model", MODELS)
def test_a_decoder_writes_there_what_it_writes_on_the_cpu(
    name: str, model: str, device: str
) -> None:
    if (name, model) == ("learn2pd", "list-block"):
        pytest.skip("no filter comes with this model")
    there = replace(HERE, device=device)
    assert written(there, name, model) == written(HERE, name, model)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_decoder_writes_there_in_half_precision(name: str, device: str) -> None:
    there = replace(HERE, device=device, dtype="auto")
    assert all(written(there, name, "list-full"))


def test_a_supervisor_is_where_the_model_is(device: str) -> None:
    model = load(locate("list-full"), replace(EXACT, device=device))
    plugs = decoder_config("flashdlm", model.traits, GIVEN["flashdlm"])
    (supervisor,) = plugs.verifiers
    assert isinstance(supervisor, CausalSupervisor)
    operations.clear()
    supervisor.network.read(supervisor.network.take(), 0, [3], 1)
    assert operations, "it reads there"


@cache
def loaded(model: str, options: LocalOptions) -> Playback:
    return Playback(DiffusionBatcher.load(locate(model), options))


def written(options: LocalOptions, name: str, model: str) -> list[tuple[int, ...]]:
    playback = loaded(model, options)
    spec = (Lossless if preset(name).plain else Lossy)(name, tuple(GIVEN.get(name, {}).items()))
    heard = [
        playback.add(
            ModelRequest(
                prompt_token_ids=words.ids_of(f"{task} <sep> Tom Adam Mary <sep>"),
                decode=spec,
                sampling=Sampling(max_tokens=4, temperature=heat, seed=1),
            )
        )
        for task, heat in (("reverse", 0.0), ("shuffle", 0.7))
    ]
    playback.finish()
    return [one.completion.token_ids for one in heard]
