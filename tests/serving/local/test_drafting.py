"""Drafts change how many passes an answer takes, and nothing else of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.serving.local.playback import EXACT, Heard, Playback
from weft.core.errors import CapabilityError
from weft.core.ports import ModelRequest, Sampling
from weft.core.ports.model import Prefilled
from weft.core.values import Lossless, Lossy, Message
from weft.decoding.speculative.draft import ROOT, AuxiliaryRows, DraftProposal, DraftTree
from weft.decoding.speculative.drafter import (
    Drafter,
    PerSequenceMethod,
    SpeculativeMethod,
    TargetOutputs,
)
from weft.decoding.speculative.presets import Options, Preset

Play = Callable[..., Playback]
BOOK = {
    "type": "object",
    "properties": {"title": {"enum": ["a long title", "another"]}, "year": {"type": "integer"}},
    "required": ["title", "year"],
    "additionalProperties": False,
}


class Wild:
    """Guesses at the truth, which it may be given, with errors and wrong branches."""

    name = "wild"
    taps = (0, 2, 3)

    def __init__(self, truth: Sequence[int] = (), seed: int = 0) -> None:
        self.tokens: list[int] = []
        self.prompt = 0
        self.seen: list[int] = []
        self._truth = list(truth)
        self._random = random.Random(seed)

    def extend(self, tokens: Sequence[int]) -> None:
        assert tokens, "a drafter counts its steps by what it is told"
        if not self.tokens:
            self.prompt = len(tokens)
        self.tokens += tokens

    def see(self, seen: TargetOutputs) -> None:
        for layer in self.taps:
            assert seen.hidden[layer].shape[0] == len(seen.tokens)
        assert all(0 <= row < len(seen.aux) for row in seen.under)
        self.seen += seen.tokens

    def propose(self, most: int) -> DraftProposal:
        at = len(self.tokens) - self.prompt
        tokens: list[int] = []
        parents: list[int] = []
        above = ROOT
        for token in self._truth[at : at + self._random.randint(0, most // 2)]:
            wrong = self._random.randrange(40)
            if wrong != token:
                tokens.append(wrong)
                parents.append(above)
            tokens.append(token)
            parents.append(above)
            above = len(tokens) - 1
        tree = DraftTree(tuple(tokens), tuple(parents))
        under = tuple(self._random.randint(ROOT, len(tree) - 1) for _ in range(2))
        depths = tuple(int(tree.depths[node + 1]) + 1 for node in under)
        return DraftProposal(tree, AuxiliaryRows((1, 2), under, depths, np.eye(2, dtype=np.bool_)))


class Broken(Wild):
    """Fails at one of its calls."""

    def __init__(self, at: str, truth: Sequence[int]) -> None:
        super().__init__(truth)
        self._at = at
        self._left = 2

    def _fail(self, call: str) -> None:
        if call == self._at:
            self._left -= 1
            if not self._left:
                raise OSError("the drafter is gone")

    def extend(self, tokens: Sequence[int]) -> None:
        self._fail("extend")
        super().extend(tokens)

    def see(self, seen: TargetOutputs) -> None:
        self._fail("see")
        super().see(seen)

    def propose(self, most: int) -> DraftProposal:
        self._fail("propose")
        if self._at in ("strange", "many"):
            return DraftProposal(
                DraftTree.chain([10**6] if self._at == "strange" else [1] * (most + 1))
            )
        return super().propose(most)


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Drafter]], None]:
    """Makes `lookup` draft with another drafter."""

    def put(begin: Callable[[], Drafter]) -> None:
        def make(_network: object, _options: Options) -> SpeculativeMethod:
            return PerSequenceMethod("wild", begin, 12)

        found = Preset("wild", "for tests", make)
        monkeypatch.setattr("weft.decoding.speculative.presets.preset", lambda _name: found)

    return put


def asking(number: int, **fields: Any) -> ModelRequest:
    drawn = {"temperature": 0.8, "top_p": 0.9, "seed": number, "max_tokens": 30}
    sampling = Sampling(**{**drawn, **fields.pop("sampling", {})})
    return ModelRequest((Message("user", f"tell {number}"),), sampling=sampling, **fields)


REQUESTS = [
    asking(0),
    asking(1, sampling={"temperature": 0}),
    asking(2, sampling={"max_tokens": 1}),
    asking(3, sampling={"max_tokens": 200, "stop": ("e",)}),
    asking(4, top_logprobs=3),
    asking(5, schema=BOOK, sampling={"max_tokens": 90}),
    asking(6, grammar='start: /[a-c]{3,20}/ " is it" /[0-9]{4}/', sampling={"temperature": 2.0}),
    asking(7, schema=BOOK, logprobs=True, sampling={"max_tokens": 90}),
    asking(8, sampling={"stop_token_ids": (30, 31, 32, 33), "max_tokens": 60}),
]


def essence(heard: Heard) -> tuple[Any, ...]:
    end = heard.completion
    return end.text, end.token_ids, end.finish_reason, end.stop, end.usage.completion_tokens


@pytest.mark.parametrize("batch", [1, 3, 9])
def test_drafts_change_nothing_but_the_passes(play: Play, use: Any, batch: int) -> None:
    options = replace(EXACT, max_batch=batch)
    plain = [play(options).add_and_finish(request) for request in REQUESTS]
    drafters: list[Wild] = []
    truths = iter([heard.completion.token_ids for heard in plain])

    def begin() -> Wild:
        drafters.append(Wild(next(truths), len(drafters)))
        return drafters[-1]

    use(begin)
    playback = play(options)
    drafted = [playback.add(replace(each, decode=Lossless("lookup"))) for each in REQUESTS]
    playback.finish()
    for one, other, drafter in zip(plain, drafted, drafters, strict=True):
        assert essence(other) == essence(one)
        end = other.completion
        told = end.speculation
        assert told is not None
        assert told.lossless
        assert not told.fallback
        assert np.allclose(end.logprobs, one.completion.logprobs, atol=1e-4)
        assert drafter.tokens[drafter.prompt :] == list(end.token_ids)
        # it saw every token that was read, in order, but for what another row had read already
        assert drafter.seen == drafter.tokens[: len(drafter.seen)] or end.usage.cached_tokens
    long = drafted[0].completion.speculation
    assert long is not None
    assert long.accepted > 5
    assert long.forwards + long.accepted == 30


def test_a_prefix_that_was_drafted_is_taken_over_exactly(play: Play, use: Any) -> None:
    """The columns of accepted branches are those of an ordinary sequence."""
    first = asking(1, sampling={"temperature": 0, "max_tokens": 60})
    told = play().add_and_finish(first).completion
    use(lambda: Wild(told.token_ids))
    playback = play()
    one = playback.add_and_finish(replace(first, decode=Lossless("lookup")))
    begun = one.events[0]
    assert isinstance(begun, Prefilled)
    prompt = begun.prompt_token_ids
    longer = ModelRequest(
        prompt_token_ids=(*prompt, *told.token_ids, 5, 6), sampling=Sampling(40, 0)
    )
    over = playback.add_and_finish(longer).completion
    fresh = play().add_and_finish(longer).completion
    assert over.usage.cached_tokens > len(prompt) + 50
    assert over.token_ids == fresh.token_ids


@pytest.mark.parametrize("at", ["extend", "see", "propose", "strange", "many"])
def test_a_drafter_that_fails_costs_no_request(
    play: Play, use: Any, at: str, caplog: pytest.LogCaptureFixture
) -> None:
    plain = [play().add_and_finish(request) for request in REQUESTS[:2]]
    truths = iter([heard.completion.token_ids for heard in plain])
    use(lambda: Broken(at, next(truths)))
    playback = play()
    drafted = [playback.add(replace(each, decode=Lossless("lookup"))) for each in REQUESTS[:2]]
    playback.finish()
    assert [essence(heard) for heard in drafted] == [essence(heard) for heard in plain]
    for heard in drafted:
        told = heard.completion.speculation
        assert told is not None
        wanted = {"strange": "1000000", "many": "13 nodes"}.get(at, "the drafter is gone")
        assert wanted in told.fallback
    [warning] = caplog.records
    assert (warning.name, warning.levelname) == ("weft.decoding", "WARNING")
    assert warning.getMessage() == (
        f"the decoder wild failed, and answers go on without drafts: {told.fallback}"
    )


def test_what_may_change_the_text_has_to_be_asked_for(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(_network: object, _options: Options) -> SpeculativeMethod:
        return PerSequenceMethod("loose", Wild, 2)

    found = Preset("loose", "for tests", make, lossless=False)
    monkeypatch.setattr("weft.decoding.speculative.presets.preset", lambda _name: found)
    monkeypatch.setattr("weft.serving.local.autoregressive.decoders.preset", lambda _name: found)
    with pytest.raises(CapabilityError, match="may change the text"):
        play().answer(asking(0, decode=Lossless("loose")))
    assert play().answer(asking(0, decode=Lossy("loose"))).token_ids


def test_a_decoder_that_is_none_is_refused_with_those_that_are(play: Play) -> None:
    with pytest.raises(CapabilityError, match="no decoder 'lokup'") as raised:
        play().answer(asking(0, decode=Lossless("lokup")))
    assert "'lookup'" in str(raised.value.hint)


def test_the_default_of_the_model_is_for_those_that_say_nothing(play: Play, use: Any) -> None:
    use(Wild)
    options = replace(EXACT, decode=Lossless("lookup"))
    told = play(options).answer(asking(0))
    plain = play(options).answer(asking(0, decode=Lossless("none")))
    assert told.speculation is not None
    assert plain.speculation is None
    assert told.token_ids == plain.token_ids
