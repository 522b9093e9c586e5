"""Every speculative decoder on another device than the CPU: the same text, by drafts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from tests.decoding.speculative.furnished import options_for
from tests.serving.local.playback import EXACT, Playback, asking
from weft.core.ports import ModelRequest
from weft.core.values import AUTOREGRESSIVE, Completion, DecodeSpec, Lossless, Lossy
from weft.decoding.network.network import Network
from weft.decoding.speculative.methods.auto import FREE
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


@pytest.mark.parametrize("name", NAMES)
def test_a_decoder_drafts_there(
    name: str,
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
    there = replace(EXACT, device=device)
    exact = answers(play, there, ASKED, spec)
    if lossless:
        assert [one.token_ids for one in exact] == [one.token_ids for one in on_cpu]
    # what accelerators compute in unless told otherwise
    half = answers(play, replace(there, dtype="auto"), ASKED, spec)
    for found in (exact, half):
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
