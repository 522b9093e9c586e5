"""Questions of the list languages, answered by plugs on the oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.caches.whole import Whole
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import Denoising
from weft.decoding.diffusion.loop import GREEDY, denoised
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.adapter import OracleAdapter
from weft.decoding.diffusion.oracle.asking import asked
from weft.decoding.diffusion.oracle.languages import language, valid
from weft.decoding.diffusion.oracle.question import Question
from weft.decoding.diffusion.plugs import Plugs
from weft.decoding.diffusion.policy import CommitPolicy
from weft.decoding.diffusion.schedules.fixed import Fixed as FixedBlocks
from weft.decoding.diffusion.stops.contiguous import Contiguous
from weft.decoding.speculative.chance import Keyed
from weft.decoding.speculative.law import Shaping

SAMPLED = Shaping(1.0)
ORACLE = OracleAdapter()


def whole_answer(policy: CommitPolicy, *, fresh: bool = False) -> Plugs:
    """The answer is one window, and nothing is cached."""
    return Plugs(policy, FixedBlocks(), Whole(), Contiguous(), fresh=fresh)


@dataclass(frozen=True)
class Answered:
    """A question, and the row that answered it."""

    question: Question
    row: Denoising

    @property
    def valid(self) -> bool:
        return valid(self.question, self.row.kept.tolist())


def begun(
    question: Question,
    plugs: Plugs,
    seed: int = 0,
    shaping: Shaping = GREEDY,
    *,
    adapter: OracleAdapter = ORACLE,
    room: int = 0,
) -> Denoising:
    """`room`: slots for terminators behind the answer."""
    length = language(question).length(question) + room
    canvas = Canvas(question.prompt, length, words.MASK, row=seed)
    return Denoising(canvas, plugs, adapter.traits, Keyed(seed), shaping)


def answered(
    operation: str,
    n: int,
    count: int,
    plugs: Plugs | Callable[[int], Plugs],
    shaping: Shaping = GREEDY,
    *,
    adapter: OracleAdapter = ORACLE,
    room: int = 0,
) -> list[Answered]:
    """So many random questions, all in the same passes."""
    random = np.random.default_rng(7)
    made = plugs if callable(plugs) else lambda _: plugs
    rows = [
        Answered(question, begun(question, made(seed), seed, shaping, adapter=adapter, room=room))
        for seed, question in enumerate(asked(operation, n, random) for _ in range(count))
    ]
    denoised([one.row for one in rows], adapter)
    return rows
