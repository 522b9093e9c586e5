"""Every speculative decoder on another device than the CPU: the same text, by drafts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import pytest

from tests.decoding.speculative.decoder_fixtures import options_for
from tests.serving.local.playback import EXACT, Playback, asking
from weft.core.ports import ModelRequest
from weft.core.values import AUTOREGRESSIVE, Completion, DecodeSpec, Lossless, Lossy
from weft.decoding.network.network import Network
from weft.decoding.speculative.drafters.auto.preset import FREE
from weft.decoding.speculative.presets import NAMES, preset
from weft.serving.local import LocalOptions

PROMPT: Final = (5, 60, 61, 62, 7, 60, 61, 62, 7, 60, 61)
ASKED: Final = (
    asking(*PROMPT, max_tokens=12),
    asking(*PROMPT[:3], max_tokens=4, temperature=0.8, top_p=0.9, seed=3),
)


@pytest.fixture(scope="module")
def on_cpu(play: Callable[..., Playback]) -> list[Completion]:
    """What the requests get plainly."""
    return answers(play, EXACT, ASKED, AUTOREGRESSIVE)


DTYPES: Final = ("float32", pytest.param("auto", marks=pytest.mark.slow))
"""Exact, and what accelerators compute in unless told otherwise."""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_a_decoder_drafts_there(
    name: str,
    dtype: Literal["float32", "auto"],
    device: str,
    play: Callable[..., Playback],
    on_cpu: list[Completion],
    tiny_path: Path,
    tmp_path: Path,
) -> None:
    network = Network.load(tiny_path, EXACT)
    options = tuple(options_for(name, network, tiny_path, tmp_path / "drafter").items())
    lossless = preset(name).lossless
    spec = Lossless(name, options) if lossless else Lossy(name, options)
    found = answers(play, replace(EXACT, device=device, dtype=dtype), ASKED, spec)
    if lossless and dtype == "float32":
        assert [one.token_ids for one in found] == [one.token_ids for one in on_cpu]
    assert [one.speculation.fallback for one in found if one.speculation] == ["", ""]
    drafted = sum(one.speculation.drafted for one in found if one.speculation)
    assert drafted > 0 or name in (*FREE, "auto"), "those wait for a text that repeats itself"


def answers(
    play: Callable[..., Playback],
    where: LocalOptions,
    asked: Sequence[ModelRequest],
    spec: DecodeSpec,
) -> list[Completion]:
    playback = play(where)
    heard = [playback.add(replace(one, decode=spec)) for one in asked]
    playback.finish()
    playback.batcher.close()
    return [one.completion for one in heard]
