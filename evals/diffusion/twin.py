"""The autoregressive twin: the same model read left to right, one token a pass."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evals.diffusion.asking import TOGETHER, Answered, room
from weft.decoding.diffusion.counters import Counters
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.question import Question
from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.speculative.chance import Keyed
from weft.decoding.speculative.law import Shaping

NAME = "ar_twin"


def written(network: Network, asked: Sequence[Question], shaping: Shaping) -> list[Answered]:
    """All questions, many at a time; the answer to the n-th is drawn from the seed n."""
    found: list[Answered] = []
    for first in range(0, len(asked), TOGETHER):
        some = asked[first : first + TOGETHER]
        texts = [_Text(question, Keyed(first + n)) for n, question in enumerate(some)]
        _write(network, texts, shaping)
        found += [Answered(text.question, tuple(text.ids), text.counters) for text in texts]
    return found


def timed(network: Network, question: Question, shaping: Shaping, seed: int) -> Answered:
    """One answer, alone."""
    began = time.perf_counter()
    text = _Text(question, Keyed(seed))
    _write(network, [text], shaping)
    seconds = time.perf_counter() - began
    return Answered(question, tuple(text.ids), text.counters, seconds)


@dataclass(slots=True)
class _Text:
    """A question with as much of its answer as is written; `read` of it are in the cache."""

    question: Question
    chance: Keyed
    read: int = 0
    ids: list[int] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)
    ended: bool = False

    def span(self, slot: int) -> Span:
        new = [*self.question.prompt, *self.ids][self.read :]
        return Span(slot, range(self.read, self.read + len(new)), new, 1)

    def take(self, span: Span, logits: NDArray[np.float32], shaping: Shaping) -> None:
        self.counters.passes["denoise"] += 1
        self.counters.tokens += len(span.tokens)
        self.read = span.end
        token = self.chance.token(shaping.law(logits), len(self.ids))
        if token != words.EOS:
            self.ids.append(token)
        self.ended = token == words.EOS or len(self.ids) == room(self.question)
        self.counters.kept = len(self.ids)


def _write(network: Network, texts: Sequence[_Text], shaping: Shaping) -> None:
    """All of them, each in a slot of its own."""
    going = list(enumerate(texts))
    while going:
        spans = [text.span(slot) for slot, text in going]
        readings = network.forward(spans)
        for (slot, text), span in zip(going, spans, strict=True):
            text.take(span, readings[slot].logits[-1], shaping)
        going = [(slot, text) for slot, text in going if not text.ended]
