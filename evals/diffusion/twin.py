"""The autoregressive twin: the same model read left to right, one token a pass."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evals.diffusion.asking import TOGETHER, Answered, room
from weft.decoding.diffusion.denoising import DenoisingCounters
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.language import ListQuestion
from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.sampling import CounterRng, SamplingParams

NAME = "ar_twin"


def written(
    network: Network, asked: Sequence[ListQuestion], shaping: SamplingParams
) -> list[Answered]:
    """All questions, many at a time; the answer to the n-th is drawn from the seed n."""
    found: list[Answered] = []
    for first in range(0, len(asked), TOGETHER):
        some = asked[first : first + TOGETHER]
        texts = [_Text(question, CounterRng(first + n)) for n, question in enumerate(some)]
        _write(network, texts, shaping)
        found += [Answered(text.question, tuple(text.ids), text.counters) for text in texts]
    return found


def timed(network: Network, question: ListQuestion, shaping: SamplingParams, seed: int) -> Answered:
    """One answer, alone."""
    began = time.perf_counter()
    text = _Text(question, CounterRng(seed))
    _write(network, [text], shaping)
    seconds = time.perf_counter() - began
    return Answered(question, tuple(text.ids), text.counters, seconds)


@dataclass(slots=True)
class _Text:
    """A question with as much of its answer as is written; `read` of it are in the cache."""

    question: ListQuestion
    chance: CounterRng
    read: int = 0
    ids: list[int] = field(default_factory=list)
    counters: DenoisingCounters = field(default_factory=DenoisingCounters)
    ended: bool = False

    def span(self, slot: int) -> Span:
        new = [*self.question.prompt, *self.ids][self.read :]
        return Span(slot, range(self.read, self.read + len(new)), new, 1)

    def take(self, span: Span, logits: NDArray[np.float32], shaping: SamplingParams) -> None:
        self.counters.passes["denoise"] += 1
        self.counters.tokens += len(span.tokens)
        self.read = span.end
        token = self.chance.token(shaping.distribution(logits), len(self.ids))
        if token != words.EOS:
            self.ids.append(token)
        self.ended = token == words.EOS or len(self.ids) == room(self.question)
        self.counters.kept = len(self.ids)


def _write(network: Network, texts: Sequence[_Text], shaping: SamplingParams) -> None:
    """All of them, each in a slot of its own."""
    going = list(enumerate(texts))
    while going:
        spans = [text.span(slot) for slot, text in going]
        readings = network.forward(spans)
        for (slot, text), span in zip(going, spans, strict=True):
            text.take(span, readings[slot].logits[-1], shaping)
        going = [(slot, text) for slot, text in going if not text.ended]
