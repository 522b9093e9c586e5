"""The autoregressive twin: the same model read left to right, one token a pass."""

from __future__ import annotations

import time

from evals.diffusion.asking import Answered, room
from weft.decoding.diffusion.counters import Counters
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.question import Question
from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.speculative.chance import Keyed
from weft.decoding.speculative.law import Shaping

NAME = "ar_twin"


def written(network: Network, question: Question, shaping: Shaping, seed: int) -> Answered:
    """One answer, alone, in slot 0 of the network."""
    began = time.perf_counter()
    chance, counters, ids = Keyed(seed), Counters(), []
    read, at = list(question.prompt), 0
    for position in range(room(question)):
        span = Span(0, range(at, at + len(read)), read, 1)
        logits = network.forward([span])[0].logits[-1]
        counters.passes["denoise"] += 1
        counters.tokens += len(read)
        at += len(read)
        token = chance.token(shaping.law(logits), position)
        if token == words.EOS:
            break
        ids.append(token)
        read = [token]
    counters.kept = len(ids)
    return Answered(question, tuple(ids), counters, time.perf_counter() - began)
