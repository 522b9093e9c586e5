"""Questions of the list languages, and what comes of them: answers, passes, seconds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.adapter import ModelAdapter
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.counters import Counters
from weft.decoding.diffusion.denoising import Denoising
from weft.decoding.diffusion.loop import denoised
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.languages import LANGUAGES, valid
from weft.decoding.diffusion.oracle.question import Question
from weft.decoding.diffusion.plugs import Plugs
from weft.decoding.diffusion.train.lists.drawing import drawn_question
from weft.decoding.speculative.chance import Keyed
from weft.decoding.speculative.law import Shaping

TOGETHER = 25
"""Rows of a pass where nothing is timed."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer to a question, and what it took."""

    question: Question
    ids: tuple[int, ...]
    counters: Counters
    seconds: float = 0.0

    @property
    def valid(self) -> bool:
        return valid(self.question, self.ids)


def questions(operation: str, sizes: Sequence[int], count: int, seed: int = 0) -> list[Question]:
    """`count` questions about items that no training has seen together, `sizes` in turn."""
    chance = np.random.default_rng([seed, words.operation_id(operation)])
    language = LANGUAGES[operation]
    fitting = [n for n in sizes if language.shortest <= n <= language.longest]
    return [
        drawn_question(operation, fitting[number % len(fitting)], chance, unseen=True)
        for number in range(count)
    ]


def room(question: Question, *, ends: bool = True) -> int:
    """Slots for its answer: as many as that takes, and its terminator if it `ends`."""
    return LANGUAGES[question.operation].length(question) + ends


def answered(
    adapter: ModelAdapter,
    plugs: Plugs,
    asked: Sequence[Question],
    shaping: Shaping,
    *,
    ends: bool = True,
) -> list[Answered]:
    """All questions, many at a time; the answer to the n-th is drawn from the seed n."""
    found: list[Answered] = []
    for first in range(0, len(asked), TOGETHER):
        some = asked[first : first + TOGETHER]
        rows = [
            Denoising(
                _canvas(adapter, question, n, ends=ends),
                plugs,
                adapter.traits,
                Keyed(first + n),
                shaping,
            )
            for n, question in enumerate(some)
        ]
        denoised(rows, adapter)
        found += [
            Answered(question, _ids(row), row.counters)
            for question, row in zip(some, rows, strict=True)
        ]
        for n in range(len(some)):
            adapter.forget(n)
    return found


def timed(
    adapter: ModelAdapter, plugs: Plugs, question: Question, shaping: Shaping, seed: int
) -> Answered:
    """One question, alone."""
    began = time.perf_counter()
    canvas = _canvas(adapter, question, 0, ends=True)
    row = Denoising(canvas, plugs, adapter.traits, Keyed(seed), shaping)
    denoised([row], adapter)
    seconds = time.perf_counter() - began
    adapter.forget(0)
    return Answered(question, _ids(row), row.counters, seconds)


def _canvas(adapter: ModelAdapter, question: Question, row: int, *, ends: bool) -> Canvas:
    mask = adapter.traits.mask_id
    fill = words.MASK if mask is None else mask
    return Canvas(question.prompt, room(question, ends=ends), fill, row=row)


def _ids(row: Denoising) -> tuple[int, ...]:
    """Up to the first terminator: a policy may fill a canvas without stopping at it."""
    ids = [int(token) for token in row.kept]
    return tuple(ids[: ids.index(words.EOS)] if words.EOS in ids else ids)
