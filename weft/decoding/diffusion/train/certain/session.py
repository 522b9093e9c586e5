"""A whole distillation: a model's own texts, steps, a folder, passes before and after.

Knows no terminal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import torch

from weft.core.errors import InputError
from weft.decoding.diffusion.adapter import ModelAdapter
from weft.decoding.diffusion.loop import denoised
from weft.decoding.diffusion.policies.entropy_threshold import EntropyThreshold
from weft.decoding.diffusion.train.certain.lesson import CertainLesson, OwnTexts, OwnTextsSource
from weft.decoding.diffusion.train.certain.student import Student
from weft.decoding.diffusion.train.order import (
    CHECKPOINT,
    CONFIG,
    Hearing,
    Kind,
    Order,
    Trained,
    open_folder,
)
from weft.decoding.diffusion.train.own_prompts import Prompt, prompts_of
from weft.decoding.diffusion.train.own_texts import model_of, rows_of, written
from weft.decoding.network.cores import model_threads
from weft.decoding.train.frame import Progress, Schedule, Trainer
from weft.decoding.train.news import Measures, Writes

_ALL: Final = 100
_AT_ONCE: Final = 8


def _train(order: Order, resume: bool, hearing: Hearing) -> Trained | None:
    if order.model is None:
        raise InputError("a distillation is of one model", hint="--model NAME or FOLDER")
    settings, schedule = KIND.set_to(order), KIND.scheduled(order)
    if not settings["block"] or not settings["texts"] or settings["least_masked"] > _ALL:
        raise InputError("neither blocks nor texts can be none, nor shares above 100")
    open_folder(order, resume)
    torch.set_num_threads(order.threads or model_threads())
    torch.manual_seed(schedule.seed)
    adapter = model_of(order)
    prompts = prompts_of(order, adapter.traits)
    slots = settings["slots"] or prompts.slots
    own = adapter.traits.block
    student = Student(order, settings["rank"])
    block = own or settings["block"]
    lesson = CertainLesson(student, block, own > 0, settings["least_masked"] / _ALL)
    source = OwnTextsSource()
    trainer = Trainer[OwnTexts](lesson, source, schedule, order.out / CHECKPOINT)
    if resume:
        trainer.resume()
    asked = prompts.drawn(settings["texts"], slots, np.random.default_rng(schedule.seed))
    texts = written(
        adapter,
        asked,
        slots,
        lambda done: hearing.on_news(Writes(done, len(asked))),
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
    unseen = prompts.held_out(settings["examined"])
    hearing.on_news(Measures(len(unseen)))
    student.save(order.out)
    after = model_of(replace(order, model=order.out))
    lines = _compared(adapter, after, unseen, slots, hearing)
    if lines is None:
        (order.out / CONFIG).unlink()  # it is measured when it is gone on with
        return None
    (order.out / CHECKPOINT).unlink(missing_ok=True)
    loss = losses[0] if losses else None
    return Trained(KIND.name, order.out, schedule.steps, loss, tuple(lines))


def _compared(
    before: ModelAdapter,
    after: ModelAdapter,
    asked: list[Prompt],
    slots: int,
    hearing: Hearing,
) -> list[str] | None:
    """Lines on answers to prompts that were not learnt from; None when `hearing.stop` said so."""
    found = []
    for adapter in (before, after):
        tokens = passes = same = 0
        for first in range(0, len(asked), _AT_ONCE):
            some = asked[first : first + _AT_ONCE]
            one_by_one = written(before, some, slots, lambda _done: None, hearing.stop)
            if one_by_one is None:
                return None
            rows = rows_of(adapter, some, slots, [EntropyThreshold()] * len(some))
            denoised(rows, adapter)
            for row, text in zip(rows, one_by_one, strict=True):
                kept = row.kept
                tokens += len(kept)
                passes += row.counters.forwards
                same += int((kept == text.answer[: len(kept)]).sum())
        found.append((tokens / max(passes, 1), same / max(tokens, 1)))
    if not asked:
        return []
    (rate, agreed), (faster, agrees) = found
    texts = f"{len(asked)} texts that were not learnt from"
    told = "slots as the model that was learnt from writes them one by one"
    return [
        f"{texts}: {rate:.2f} tokens a pass before, {faster:.2f} after",
        f"{told}: {agreed:.0%} before, {agrees:.0%} after",
    ]


KIND: Final = Kind(
    "dparallel",
    "a diffusion model distilled from its own texts to be certain of more slots at once",
    Schedule(steps=300, texts=48, longest=1, rate=3e-4, warm_up=0.05, keep_every=100),
    {"block": 16, "slots": 0, "least_masked": 50, "texts": 1200, "examined": 40, "rank": 0},
    _train,
    frozenset({"model", "data", "device"}),
)
"""block: of a model that has no blocks of its own. slots: of an answer; 0: 16 of a list model's,
else 64. rank: of the thin maps beside the weights; 0 learns all weights.
"""
