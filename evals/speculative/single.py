"""One answer at a time, on the network itself: a prompt is read once, then every method answers it.

So the prompt is in no figure, and a drafter that looks at the target's states sees all of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

import torch

from evals.speculative.cases.prompt import Prompt
from evals.speculative.taken import Taken
from weft.core.ports import ModelRequest
from weft.decoding.network.network import Network
from weft.decoding.network.options import Dtype, NetworkOptions
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.decoding.speculative.draft import DraftProposal, DraftTree
from weft.decoding.speculative.drafter import (
    PerSequenceMethod,
    ProposalRequest,
    SpeculativeMethod,
    TargetOutputs,
)
from weft.decoding.speculative.loop import DecodeLimits, DecodeLoop
from weft.decoding.speculative.speculation import SpeculativeSequence
from weft.decoding.speculative.target import NetworkTarget
from weft.serving.local.tokenizer import LocalTokenizer

_PROMPT: Final = 0
_ANSWER: Final = 1
"""Slots of the network's cache."""


class Nothing:
    """Implements `Drafter`: plain decoding."""

    name = "autoregressive"

    def extend(self, tokens: Sequence[int]) -> None:
        """Learns nothing."""

    def propose(self, most: int) -> DraftTree:  # noqa: ARG002 - as the port has it
        return DraftTree()


def plainly() -> SpeculativeMethod:
    """The method that drafts nothing."""
    return PerSequenceMethod("autoregressive", Nothing, 0)


class Model:
    """The weights of a folder, kept as a user's are unless `dtype` says otherwise."""

    def __init__(self, path: Path, device: str = "cpu", dtype: Dtype = "auto") -> None:
        self.network = Network.load(path, NetworkOptions(dtype=dtype, device=device))
        self._tokens = LocalTokenizer.read(path)

    def encoded(self, prompt: Prompt) -> list[int]:
        """The tokens of a prompt, up to where the answer begins."""
        unfinished = ModelRequest(prompt.messages).continues
        return self._tokens.encode_chat(prompt.messages, unfinished)

    def read(self, prompt: Prompt, methods: Iterable[SpeculativeMethod]) -> ReadPrompt:
        """Read a prompt, and what `methods` want to see of it."""
        return ReadPrompt(self.network, self.encoded(prompt), methods)


class ReadPrompt:
    """A prompt in the network's cache. Reading another one of the same network replaces it."""

    def __init__(
        self, network: Network, tokens: Sequence[int], methods: Iterable[SpeculativeMethod]
    ) -> None:
        self.tokens = tokens
        self._network = network
        taps = {tap for method in methods for tap in _taps(method, network)}
        target = NetworkTarget(network, SamplingParams(0.0), _PROMPT)
        self._seen = list(target.begin(tokens, tuple(sorted(taps))))

    def answer(self, method: SpeculativeMethod, most_tokens: int) -> Taken:
        """What `method` takes for a greedy answer. Its drafter sees the prompt outside the time."""
        timed = _Timed(method)
        speculation = SpeculativeSequence(
            cast("SpeculativeMethod", timed), self._network.vocabulary_size
        )
        for seen in self._seen:
            speculation.see(_with(seen, speculation.taps))
        speculation.extend(self.tokens)
        self._network.copy_prefix(_PROMPT, _ANSWER, len(self.tokens) - 1)
        target = NetworkTarget(self._network, SamplingParams(0.0), _ANSWER)
        target.tokens = list(self.tokens)
        limits = DecodeLimits(most_tokens, self._network.generation.end_ids)
        before = _passes(method)
        begun = time.perf_counter()
        text = [t for step in DecodeLoop(target, speculation, CounterRng(0), limits) for t in step]
        seconds = time.perf_counter() - begun
        counters = speculation.counters
        return Taken(
            tuple(text),
            counters.forwards,
            seconds,
            counters.drafted,
            counters.accepted,
            tuple(counters.tested),
            tuple(counters.held),
            _passes(method) - before,
            timed.seconds,
            "" if speculation.fallback is None else speculation.fallback.reason,
        )


class _Timed:
    """Does what the `SpeculativeMethod` it wraps does; `seconds` is how long that took to draft."""

    def __init__(self, method: SpeculativeMethod) -> None:
        self._method = method
        self.seconds = 0.0

    def __getattr__(self, name: str) -> object:
        return getattr(self._method, name)

    def propose(self, asks: Sequence[ProposalRequest]) -> Sequence[DraftProposal | BaseException]:
        begun = time.perf_counter()
        try:
            return self._method.propose(asks)
        finally:
            self.seconds += time.perf_counter() - begun


def _taps(method: SpeculativeMethod, network: Network) -> tuple[int, ...]:
    speculation = SpeculativeSequence(method, network.vocabulary_size)
    taps = speculation.taps
    speculation.end()
    return taps


def _with(seen: TargetOutputs, taps: Sequence[int]) -> TargetOutputs:
    hidden: Mapping[int, torch.Tensor] = {tap: seen.hidden[tap] for tap in taps}
    return TargetOutputs(seen.tokens, hidden)


def _passes(method: SpeculativeMethod) -> int:
    """How many passes of a drafting network there were, where the method has one."""
    return getattr(method, "forwards", 0)
