"""A whole distillation: a list model's own texts, steps, a folder, passes before and after.

Knows no terminal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch

from weft.core.errors import InputError
from weft.decoding.diffusion.adapter import ModelAdapter
from weft.decoding.diffusion.loop import denoised
from weft.decoding.diffusion.oracle.languages import LANGUAGES, valid
from weft.decoding.diffusion.policies.entropy_threshold import EntropyThreshold
from weft.decoding.diffusion.train.certain.lesson import CertainLesson, OwnTexts, OwnTextsSource
from weft.decoding.diffusion.train.lists import network
from weft.decoding.diffusion.train.lists.examine import questions
from weft.decoding.diffusion.train.order import (
    CHECKPOINT,
    CONFIG,
    Hearing,
    Kind,
    Order,
    Trained,
    open_folder,
)
from weft.decoding.diffusion.train.own_texts import list_model, prompts, rows_of, written
from weft.decoding.network.cores import model_threads
from weft.decoding.train.frame import Progress, Schedule, Trainer
from weft.decoding.train.news import Measures, Writes

_ITEMS: Final = 5
_ALL: Final = 100


def _train(order: Order, resume: bool, hearing: Hearing) -> Trained | None:
    if order.model is None:
        raise InputError("a distillation is of one model", hint="--model NAME or FOLDER")
    settings, schedule = KIND.set_to(order), KIND.scheduled(order)
    if not settings["block"] or not settings["slots"] or settings["least_masked"] > _ALL:
        raise InputError("neither blocks nor slots can be none, nor shares above 100")
    open_folder(order, resume)
    torch.set_num_threads(order.threads or model_threads())
    adapter = list_model(order.model, order.threads)
    own = adapter.traits.block
    model = network.beginning_with(order.model)
    lesson = CertainLesson(
        model, own or settings["block"], own > 0, settings["least_masked"] / _ALL
    )
    source = OwnTextsSource()
    trainer = Trainer[OwnTexts](lesson, source, schedule, order.out / CHECKPOINT)
    if resume:
        trainer.resume()
    count = settings["texts"]
    asked = prompts(count, settings["slots"], np.random.default_rng(schedule.seed))
    texts = written(
        adapter,
        asked,
        settings["slots"],
        lambda done: hearing.on_news(Writes(done, count)),
        hearing.stop,
    )
    if texts is None:
        trainer.keep()  # texts are the same when they are written again
        return None
    source.give(texts)
    losses: list[float] = []

    def tell(progress: Progress) -> None:
        losses[:] = [progress.loss]
        hearing.on_news(progress)

    if not trainer.run(tell, hearing.stop):
        return None
    trainer.keep()  # examining takes a while, too
    examined = settings["examined"]
    hearing.on_news(Measures(2 * examined * len(LANGUAGES)))
    network.save(model, order.out, "block" if own else "full", preset="dparallel")
    after = list_model(order.out, order.threads)
    compared = _Compared(settings["slots"], examined, schedule.seed)
    lines = []
    for line in compared.lines(adapter, after) if examined else ():
        if hearing.stop():
            (order.out / CONFIG).unlink()  # it is measured when it is gone on with
            return None
        lines.append(line)
    (order.out / CHECKPOINT).unlink(missing_ok=True)
    loss = losses[0] if losses else None
    return Trained(KIND.name, order.out, schedule.steps, loss, tuple(lines))


@dataclass(frozen=True, slots=True)
class _Compared:
    """With `questions` of each operation that are held out, and canvases with room for `slots`."""

    slots: int
    questions: int
    seed: int

    def lines(self, before: ModelAdapter, after: ModelAdapter) -> Iterator[str]:
        """A line for each operation: valid answers and passes, with the same policy."""
        for name in LANGUAGES:
            n = min(_ITEMS, LANGUAGES[name].longest)
            first, now = self._measured(before, name, n), self._measured(after, name, n)
            yield f"{name} of {n}: {first}, now {now}"

    def _measured(self, adapter: ModelAdapter, operation: str, n: int) -> str:
        asked = questions(operation, n, self.questions, self.seed)
        policies = [EntropyThreshold()] * len(asked)
        rows = rows_of(adapter, [question.prompt for question in asked], self.slots, policies)
        denoised(rows, adapter)
        right = [valid(ask, row.kept.tolist()) for ask, row in zip(asked, rows, strict=True)]
        passes = np.mean([row.counters.forwards for row in rows])
        return f"{np.mean(right):.0%} valid in {passes:.1f} passes"


KIND: Final = Kind(
    "dparallel",
    "a list model distilled from its own texts to be certain of more slots at once",
    Schedule(steps=300, texts=48, longest=1, rate=3e-4, warm_up=0.05, keep_every=100),
    {"block": 16, "slots": 16, "least_masked": 50, "texts": 1200, "examined": 40},
    _train,
)
