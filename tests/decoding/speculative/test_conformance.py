"""Every lossless decoder writes what plain decoding writes, whatever happens to its drafts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.decoding.speculative.decoder_fixtures import options_for
from tests.golden_files import assert_golden
from tests.serving.local.playback import EXACT, Heard, Playback, asking
from weft.core.ports import ModelRequest
from weft.core.values import AUTOREGRESSIVE, Completion, DecodeSpec, Lossless
from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.decoding.speculative.acceptance import AcceptedPath
from weft.decoding.speculative.draft import DraftProposal
from weft.decoding.speculative.drafter import (
    UNKNOWN_REQUEST,
    Drafter,
    DraftRequest,
    ProposalRequest,
    SpeculativeMethod,
    TargetObserver,
    TargetOutputs,
)
from weft.decoding.speculative.loop import DecodeLimits, DecodeLoop, decode_alone
from weft.decoding.speculative.presets import NAMES, made, preset
from weft.decoding.speculative.speculation import SpeculativeSequence

LOSSLESS = [name for name in NAMES if preset(name).lossless]
GOLDEN = Path(__file__).parent / "golden"
PROMPT = (5, 60, 61, 62, 7, 60, 61, 62, 7, 60, 61)
SHAPINGS = {
    "greedy": SamplingParams(0.0),
    "cool": SamplingParams(0.7, top_k=20),
    "nucleus": SamplingParams(0.8, top_p=0.9),
    "hot": SamplingParams(1.3, top_k=50, top_p=0.95),
    "likely": SamplingParams(1.3, min_p=0.05),
}
LONG = DecodeLimits(40)
PLAIN_SLOT = 9


class Made:
    """A preset on the tiny model: its method, and how requests ask for it."""

    def __init__(self, name: str, network: Network, tiny_path: Path, folder: Path) -> None:
        options = options_for(name, network, tiny_path, folder)
        self.name = name
        self.spec = Lossless(name, tuple(options.items()))
        self.method = made(name, network, options)


@pytest.fixture(scope="module")
def network(tiny_path: Path) -> Iterator[Network]:
    yield Network.load(tiny_path, EXACT)
    plain.cache_clear()


@pytest.fixture(scope="module")
def undrafted(play: Callable[..., Playback]) -> Callable[[ModelRequest], Completion]:
    """What a request gets alone and without drafts: found once for all decoders."""
    known: dict[str, Completion] = {}

    def answer(request: ModelRequest) -> Completion:
        asked = repr(request)
        if asked not in known:
            (known[asked],) = answered(play, [request], AUTOREGRESSIVE)
        return known[asked]

    return answer


@pytest.fixture(scope="module", params=LOSSLESS)
def preset_made(
    request: pytest.FixtureRequest,
    network: Network,
    tiny_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Made]:
    folder = tmp_path_factory.mktemp("furnished") / "drafter"
    found = Made(request.param, network, tiny_path, folder)
    yield found
    found.method.close()


@cache
def plain(
    network: Network, shaping: SamplingParams, seed: int, limits: DecodeLimits = LONG
) -> list[int]:
    """Decoding as it always was: a token, a pass."""
    text, chance = list(PROMPT), CounterRng(seed)
    network.forward([Span(PLAIN_SLOT, range(len(text) - 1), text[:-1], 0)])
    while len(text) < len(PROMPT) + limits.max_tokens:
        read = network.forward([Span(PLAIN_SLOT, (len(text) - 1,), text[-1:], 1)])
        law = shaping.distribution(read[PLAIN_SLOT].logits[-1])
        text.append(chance.token(law, len(text) - len(PROMPT)))
        if text[-1] in limits.end_ids:
            break
    return text[len(PROMPT) :]


def decoded(
    network: Network,
    method: SpeculativeMethod,
    shaping: SamplingParams,
    seed: int,
    limits: DecodeLimits = LONG,
) -> tuple[list[int], DecodeLoop]:
    decoding = decode_alone(network, PROMPT, method, shaping, CounterRng(seed), limits)
    return [token for step in decoding for token in step], decoding


def test_the_text_is_the_plain_one(preset_made: Made, network: Network) -> None:
    drafted = 0
    for seed, (name, shaping) in enumerate(SHAPINGS.items()):
        text, decoding = decoded(network, preset_made.method, shaping, seed)
        assert text == plain(network, shaping, seed), name
        counters = decoding.counters
        assert decoding.speculation.fallback is None
        assert counters.tokens == len(text) == counters.accepted + counters.forwards
        assert counters.accepted <= counters.tried <= counters.drafted
        drafted += counters.drafted
    assert drafted > 0, "a decoder that never drafts was not tried"


def test_it_is_as_long_as_it_may_be(preset_made: Made, network: Network) -> None:
    wanted = plain(network, SHAPINGS["greedy"], 0)
    for most in (1, 2, 3, 7):
        text, _ = decoded(network, preset_made.method, SHAPINGS["greedy"], 0, DecodeLimits(most))
        assert text == wanted[:most]


def test_it_ends_where_the_plain_one_ends(preset_made: Made, network: Network) -> None:
    for name in ("greedy", "hot"):
        shaping = SHAPINGS[name]
        whole = plain(network, shaping, 2)
        for at in (1, 11):
            limits = DecodeLimits(40, frozenset({whole[at]}))
            text, decoding = decoded(network, preset_made.method, shaping, 2, limits)
            assert text == whole[: whole.index(whole[at]) + 1], name
            assert decoding.done


class Failing:
    """Implements `SpeculativeMethod`: another one that raises at call number `at`, of whatever
    kind it is.
    """

    def __init__(self, method: SpeculativeMethod, at: int) -> None:
        self.acceptor = method.acceptor
        self.name = method.name
        self.calls = 0
        self.method = method
        self._at = at

    def call(self) -> None:
        self.calls += 1
        if self.calls == self._at:
            raise ZeroDivisionError("a drafter of ours")

    @property
    def nodes(self) -> int:
        return self.method.nodes

    def begin(self, request: DraftRequest = UNKNOWN_REQUEST) -> Drafter:
        self.call()
        drafter = self.method.begin(request)
        kind = FailingWatcher if isinstance(drafter, TargetObserver) else FailingDrafter
        return kind(self, drafter)

    def propose(self, asks: Sequence[ProposalRequest]) -> Sequence[DraftProposal | BaseException]:
        self.call()
        return self.method.propose([(_inner(drafter), most) for drafter, most in asks])

    def end(self, drafter: Drafter) -> None:
        self.method.end(_inner(drafter))
        self.call()

    def close(self) -> None:
        self.method.close()


class FailingDrafter:
    def __init__(self, failing: Failing, drafter: Drafter) -> None:
        self.name = drafter.name
        self.inner = drafter
        self._failing = failing

    def extend(self, tokens: Sequence[int]) -> None:
        self._failing.call()
        self.inner.extend(tokens)

    def propose(self, most: int) -> Any:
        return self.inner.propose(most)


class FailingWatcher(FailingDrafter):
    @property
    def taps(self) -> tuple[int, ...]:
        assert isinstance(self.inner, TargetObserver)
        return self.inner.taps

    def see(self, seen: TargetOutputs) -> None:
        self._failing.call()
        assert isinstance(self.inner, TargetObserver)
        self.inner.see(seen)


def _inner(drafter: Drafter) -> Drafter:
    assert isinstance(drafter, FailingDrafter)
    return drafter.inner


def test_a_drafter_that_raises_anywhere_costs_no_text(preset_made: Made, network: Network) -> None:
    limits, shaping = DecodeLimits(5), SHAPINGS["nucleus"]
    wanted = plain(network, shaping, 4, limits)
    at = 0
    while True:
        at += 1
        failing = Failing(preset_made.method, at)
        text, decoding = decoded(network, failing, shaping, 4, limits)
        assert text == wanted
        fallback = decoding.speculation.fallback
        if failing.calls < at:
            break
        assert fallback is not None, f"call {at} raised"
        assert fallback.method == preset_made.name
        assert "ZeroDivisionError: a drafter of ours" in fallback.reason
    assert fallback is None
    assert at > 8, "it is called at every step"


def requests(seed: int, **more: Any) -> list[ModelRequest]:
    """Rows of different lengths, some of which draw."""
    texts = [PROMPT, PROMPT[:3], (*PROMPT, *PROMPT[1:], 9), (7,), (60, 61, 60, 61, 60)]
    return [
        asking(
            *text,
            max_tokens=12 + 3 * row,
            temperature=0.8 * (row % 2),
            top_p=0.9,
            seed=seed,
            **more,
        )
        for row, text in enumerate(texts)
    ]


def answered(
    play: Callable[..., Playback], asked: Sequence[ModelRequest], spec: DecodeSpec
) -> list[Completion]:
    """What each request gets, decoded together."""
    playback = play()
    heard: list[Heard] = [playback.add(replace(request, decode=spec)) for request in asked]
    playback.finish()
    done = [one.completion for one in heard]
    playback.batcher.close()
    return done


def assert_same(found: Sequence[Completion], wanted: Sequence[Completion]) -> None:
    """All of the answers that must not depend on drafts."""
    for one, other in zip(found, wanted, strict=True):
        assert one.token_ids == other.token_ids
        assert one.text == other.text
        assert (one.finish_reason, one.stop) == (other.finish_reason, other.stop)
        np.testing.assert_allclose(one.logprobs, other.logprobs, rtol=0, atol=1e-4)


def test_rows_of_different_lengths_decode_together(
    preset_made: Made,
    play: Callable[..., Playback],
    undrafted: Callable[[ModelRequest], Completion],
) -> None:
    asked = requests(3, extra={"ignore_eos": True})
    wanted = [undrafted(one) for one in asked]
    found = answered(play, asked, preset_made.spec)
    assert_same(found, wanted)
    for one in found:
        assert one.speculation is not None
        assert one.speculation.method == preset_made.name
        assert one.speculation.fallback == ""
        assert one.usage.completion_tokens == one.speculation.accepted + one.speculation.forwards


def test_stops_and_log_probabilities_are_the_plain_ones(
    preset_made: Made,
    play: Callable[..., Playback],
    undrafted: Callable[[ModelRequest], Completion],
) -> None:
    for request in requests(3)[:2]:
        whole = undrafted(request)
        text, ids = whole.text, whole.token_ids
        for sampling in (
            replace(request.sampling, stop=(text[len(text) // 2 :][:2] or "zz",)),
            replace(request.sampling, stop_token_ids=(ids[len(ids) // 2],)),
        ):
            asked = replace(request, sampling=sampling, logprobs=True)
            assert_same(answered(play, [asked], preset_made.spec), [undrafted(asked)])


def test_grammars_hold_in_drafts(
    preset_made: Made,
    play: Callable[..., Playback],
    undrafted: Callable[[ModelRequest], Completion],
) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "name": {"enum": ["fox", "the other dog"]}},
        "required": ["a", "name"],
        "additionalProperties": False,
    }
    for temperature in (0.0, 0.8):
        asked = replace(
            asking(*PROMPT, max_tokens=80, temperature=temperature, seed=6, extra={}),
            schema=schema,
        )
        (found,) = answered(play, [asked], preset_made.spec)
        assert found.text == undrafted(asked).text
        assert json.loads(found.text)["name"]
        assert found.speculation is not None
        assert found.speculation.fallback == ""


def test_a_slot_that_was_drafted_in_is_an_exact_prefix(
    preset_made: Made,
    play: Callable[..., Playback],
    undrafted: Callable[[ModelRequest], Completion],
) -> None:
    """A later request that takes over what an earlier one left reads the same keys."""
    first = asking(*PROMPT, max_tokens=20)
    playback = play()
    begun = playback.answer(replace(first, decode=preset_made.spec))
    text = (*PROMPT, *begun.token_ids, 5, 6)
    for decode in (AUTOREGRESSIVE, preset_made.spec):
        later = replace(asking(*text, max_tokens=12), logprobs=True, decode=decode)
        fresh = undrafted(replace(later, decode=AUTOREGRESSIVE))
        playback = play()
        playback.answer(replace(first, decode=preset_made.spec))
        taken_over = playback.answer(later)
        playback.batcher.close()
        assert taken_over.usage.cached_tokens >= len(PROMPT) + 18
        assert_same([taken_over], [fresh])


def trace(
    network: Network, method: SpeculativeMethod, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Every step of two short texts: the tree, the rows beside it, the walk; and the counters."""
    steps: list[dict[str, Any]] = []
    walk_plainly = SpeculativeSequence.walk

    def walk(self: SpeculativeSequence, draft: DraftProposal, *rest: Any) -> AcceptedPath:
        came = walk_plainly(self, draft, *rest)
        tree = {
            "tokens": draft.tree.tokens,
            "parents": draft.tree.parents,
            "beside": len(draft.aux),
        }
        steps.append({**tree, "path": came.path, "bonus": came.bonus})
        return came

    monkeypatch.setattr(SpeculativeSequence, "walk", walk)
    texts = {}
    for name in ("greedy", "nucleus"):
        steps.clear()
        _, decoding = decoded(network, method, SHAPINGS[name], 0, DecodeLimits(16))
        counters = decoding.counters
        texts[name] = {
            "steps": list(steps),
            "forwards": counters.forwards,
            "drafted": counters.drafted,
            "accepted": counters.accepted,
        }
    found: dict[str, Any] = json.loads(json.dumps(texts))
    return found


def test_the_trace_is_golden(
    preset_made: Made,
    network: Network,
    tiny_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fresh = Made(preset_made.name, network, tiny_path, tmp_path / "drafter")
    try:
        found = trace(network, fresh.method, monkeypatch)
    finally:
        fresh.method.close()
    assert_golden(GOLDEN / f"{preset_made.name}.json", json.dumps(found) + "\n")
