"""Questions of the list languages, answered by plugs on the oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.caches.exact import NoCache
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import GREEDY, DenoisingRow, denoise_all
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.adapter import OracleAdapter
from weft.decoding.diffusion.oracle.language import ListQuestion
from weft.decoding.diffusion.oracle.languages import language_of, random_question, valid
from weft.decoding.diffusion.ports import CommitPolicy, DecoderConfig
from weft.decoding.diffusion.schedules import FixedBlocks
from weft.decoding.diffusion.stops import FirstTerminator
from weft.decoding.sampling import CounterRng, SamplingParams

SAMPLED = SamplingParams(1.0)
ORACLE = OracleAdapter()


def whole_answer(policy: CommitPolicy, *, fresh: bool = False) -> DecoderConfig:
    """The answer is one window, and nothing is cached."""
    return DecoderConfig(policy, FixedBlocks(), NoCache(), FirstTerminator(), fresh=fresh)


@dataclass(frozen=True)
class Answered:
    """A question, and the row that answered it."""

    question: ListQuestion
    row: DenoisingRow

    @property
    def valid(self) -> bool:
        return valid(self.question, self.row.kept.tolist())


def begun(
    question: ListQuestion,
    plugs: DecoderConfig,
    seed: int = 0,
    shaping: SamplingParams = GREEDY,
    *,
    adapter: OracleAdapter = ORACLE,
    room: int = 0,
) -> DenoisingRow:
    """`room`: slots for terminators behind the answer."""
    length = language_of(question).length(question) + room
    canvas = Canvas(question.prompt, length, words.MASK, row=seed)
    return DenoisingRow(canvas, plugs, adapter.traits, CounterRng(seed), shaping)


def answered(
    operation: str,
    n: int,
    count: int,
    plugs: DecoderConfig | Callable[[int], DecoderConfig],
    shaping: SamplingParams = GREEDY,
    *,
    adapter: OracleAdapter = ORACLE,
    room: int = 0,
) -> list[Answered]:
    """So many random questions, all in the same passes."""
    random = np.random.default_rng(7)
    made = plugs if callable(plugs) else lambda _: plugs
    rows = [
        Answered(question, begun(question, made(seed), seed, shaping, adapter=adapter, room=room))
        for seed, question in enumerate(random_question(operation, n, random) for _ in range(count))
    ]
    denoise_all([one.row for one in rows], adapter)
    return rows
