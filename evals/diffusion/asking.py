"""Questions of the list languages, and what comes of them: answers, passes, seconds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.adapter import ModelAdapter
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import DenoisingCounters, DenoisingRow, denoise_all
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.language import ListQuestion
from weft.decoding.diffusion.oracle.languages import LANGUAGES, valid
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.training.diffusion.list_model.questions import draw_question

TOGETHER = 25
"""Rows of a pass where nothing is timed."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer to a question, and what it took."""

    question: ListQuestion
    ids: tuple[int, ...]
    counters: DenoisingCounters
    seconds: float = 0.0

    @property
    def valid(self) -> bool:
        return valid(self.question, self.ids)


def questions(
    operation: str, sizes: Sequence[int], count: int, seed: int = 0
) -> list[ListQuestion]:
    """`count` questions about items that no training has seen together, `sizes` in turn."""
    chance = np.random.default_rng([seed, words.operation_id(operation)])
    language = LANGUAGES[operation]
    fitting = [n for n in sizes if language.shortest <= n <= language.longest]
    return [
        draw_question(operation, fitting[number % len(fitting)], chance, unseen=True)
        for number in range(count)
    ]


def room(question: ListQuestion, *, ends: bool = True) -> int:
    """Slots for its answer: as many as that takes, and its terminator if it `ends`."""
    return LANGUAGES[question.operation].length(question) + ends


def answered(
    adapter: ModelAdapter,
    plugs: DecoderConfig,
    asked: Sequence[ListQuestion],
    shaping: SamplingParams,
    *,
    ends: bool = True,
) -> list[Answered]:
    """All questions, many at a time; the answer to the n-th is drawn from the seed n."""
    found: list[Answered] = []
    for first in range(0, len(asked), TOGETHER):
        some = asked[first : first + TOGETHER]
        rows = [
            DenoisingRow(
                _canvas(adapter, question, n, ends=ends),
                plugs,
                adapter.traits,
                CounterRng(first + n),
                shaping,
            )
            for n, question in enumerate(some)
        ]
        denoise_all(rows, adapter)
        found += [
            Answered(question, _ids(row), row.counters)
            for question, row in zip(some, rows, strict=True)
        ]
        for n in range(len(some)):
            adapter.forget(n)
    return found


def timed(
    adapter: ModelAdapter,
    plugs: DecoderConfig,
    question: ListQuestion,
    shaping: SamplingParams,
    seed: int,
) -> Answered:
    """One question, alone."""
    began = time.perf_counter()
    canvas = _canvas(adapter, question, 0, ends=True)
    row = DenoisingRow(canvas, plugs, adapter.traits, CounterRng(seed), shaping)
    denoise_all([row], adapter)
    seconds = time.perf_counter() - began
    adapter.forget(0)
    return Answered(question, _ids(row), row.counters, seconds)


def _canvas(adapter: ModelAdapter, question: ListQuestion, row: int, *, ends: bool) -> Canvas:
    mask = adapter.traits.mask_id
    fill = words.MASK if mask is None else mask
    return Canvas(question.prompt, room(question, ends=ends), fill, row=row)


def _ids(row: DenoisingRow) -> tuple[int, ...]:
    """Up to the first terminator: a policy may fill a canvas without stopping at it."""
    ids = [int(token) for token in row.kept]
    return tuple(ids[: ids.index(words.EOS)] if words.EOS in ids else ids)
