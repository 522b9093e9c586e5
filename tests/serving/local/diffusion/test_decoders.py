"""Every decoder behind the server: alone or in a batch the same, streamed, and as long as asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.serving.local.diffusion.conftest import Playing
from tests.serving.local.diffusion.test_batching import PROMPTS, deltas, facts, fast
from tests.serving.local.playback import EXACT
from weft.core.values import DecodeSpec, Lossless, Lossy
from weft.decoding.diffusion import catalogue
from weft.decoding.diffusion.adapter import ModelTraits
from weft.serving.local.diffusion.decoders import DiffusionDecoders

ALONE = [name for name in catalogue.NAMES if not catalogue.preset(name).needs]


def spec(name: str) -> DecodeSpec:
    return Lossless(name) if catalogue.preset(name).plain else Lossy(name)


@pytest.mark.parametrize("name", ALONE)
def test_answers_in_a_batch_are_those_alone(play: Playing, name: str) -> None:
    asked = [
        fast(*PROMPTS[0], decode=spec(name), seed=1, max_tokens=10),
        fast(*PROMPTS[1], decode=spec(name), temperature=1.0, seed=3, max_tokens=7),
    ]
    options = replace(EXACT, canvas_tokens=8)
    lone = [play(options).answer(request) for request in asked]
    playback = play(options)
    heard = [playback.add(request) for request in asked]
    playback.finish()
    assert [facts(each.completion) for each in heard] == [facts(answer) for answer in lone]
    for each in heard:
        answer = each.completion
        assert answer.text == "".join(piece.text for piece in deltas(each))
        assert answer.usage.completion_tokens == each.request.sampling.max_tokens


def test_a_way_is_made_once_and_the_last_few_are_kept() -> None:
    """Clients of a gateway may ask for as many as there are numbers."""
    ways = DiffusionDecoders(ModelTraits(10, 9, frozenset({8})))
    first, second = ways.decoder(Lossy("factor")), ways.decoder(Lossy("klass"))
    for number in range(1, 31):
        ways.decoder(Lossy("factor", (("factor", float(number)),)))
    assert ways.decoder(Lossy("factor")) is first
    ways.decoder(Lossy("factor", (("factor", 31.0),)))
    assert ways.decoder(Lossy("factor")) is first
    assert ways.decoder(Lossy("klass")) is not second
