"""A whole conversion: a causal chat model in, one that fills blocks out, with what was measured.

Knows no terminal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

import torch

from weft.core.errors import InputError
from weft.decoding.diffusion.train.block import source
from weft.decoding.diffusion.train.block.course import BlockCourse, Found, Growth
from weft.decoding.diffusion.train.block.layout import Laying
from weft.decoding.diffusion.train.block.learner import Adapted, Learner, Whole
from weft.decoding.diffusion.train.block.noise import Noising
from weft.decoding.diffusion.train.block.pages import Page, Pages, Talks
from weft.decoding.diffusion.train.order import (
    CHECKPOINT,
    Hearing,
    Kind,
    Order,
    Trained,
    open_folder,
)
from weft.decoding.network.cores import model_threads
from weft.decoding.train.frame import Progress, Schedule, Source, Trainer
from weft.decoding.train.news import Measures

_HELD_OUT_EVERY: Final = 10
SETTINGS: Final[Mapping[str, int]] = {
    "block": 32,
    "rank": 8,
    "shifted": 1,
    "complement": 1,
    "weighted": 0,
    "forms": 1,
    "grow": 14,
    "held_out": 32,
}
"""block: its slots. rank: of the thin maps beside the weights; 0 learns all weights, which is for
GPUs and larger data. shifted: a slot is predicted by the one before it, as the model always did.
complement, weighted: of noise. forms: each second made text is a form with open values. grow: steps
before blocks double, from one slot; 0: they are whole from the start. held_out: how many made texts
are measured.
"""


def _train(order: Order, resume: bool, hearing: Hearing) -> Trained | None:
    if order.model is None:
        raise InputError("a conversion begins with a causal model", hint="--model NAME or FOLDER")
    settings, schedule = KIND.set_to(order), KIND.scheduled(order)
    if not settings["block"] or not settings["held_out"]:
        raise InputError("neither blocks nor held-out texts can be none")
    open_folder(order, resume)
    torch.set_num_threads(order.threads or model_threads())
    torch.manual_seed(schedule.seed)
    texts = source.Texts(order.model)
    learnt_from, held_out = _texts(order, texts, settings)
    laying = Laying(settings["block"], texts.mask, texts.end, shifted=bool(settings["shifted"]))
    learner = _learner(order, order.model, settings["rank"], texts.mask)
    course = _course(learner, laying, settings)
    hearing.on_news(Measures(len(held_out)))
    before = course.examine(held_out, schedule.texts, hearing.stop)
    trainer = Trainer[Pages](course, learnt_from, schedule, order.out / CHECKPOINT)
    if before is None:
        if not resume:
            trainer.keep()  # nothing learnt yet; what is there is of a later step
        return None
    if resume:
        trainer.resume()
    course.grow_to(trainer.step)
    losses: list[float] = []

    def tell(progress: Progress) -> None:
        losses[:] = [progress.loss]
        course.grow_to(progress.step)
        hearing.on_news(progress)

    if not trainer.run(tell, hearing.stop):
        return None
    trainer.keep()  # measuring takes a while, too
    hearing.on_news(Measures(len(held_out)))
    after = course.examine(held_out, schedule.texts, hearing.stop)
    if after is None:
        return None
    learner.save(order.out, _told(laying, schedule, before, after))
    (order.out / CHECKPOINT).unlink(missing_ok=True)
    loss = losses[0] if losses else None
    return Trained(KIND.name, order.out, schedule.steps, loss, _lines(before, after))


def _course(learner: Learner, laying: Laying, settings: Mapping[str, int]) -> BlockCourse:
    noising = Noising(bool(settings["complement"]), bool(settings["weighted"]))
    return BlockCourse(learner, laying, noising, Growth(laying.block, settings["grow"]))


def _texts(
    order: Order, texts: source.Texts, settings: Mapping[str, int]
) -> tuple[Source[Pages], list[Page]]:
    if order.data in {None, source.NARROW}:
        made = source.Made(texts, forms=bool(settings["forms"]))
        return made, made.held_out(settings["held_out"])
    learnt, held_out = source.read(Path(str(order.data)), texts).split(_HELD_OUT_EVERY)
    longest = max(len(text.tokens) for text in held_out.texts)
    return Talks(learnt), [Page.of(text, longest) for text in held_out.texts]


def _learner(order: Order, model: Path, rank: int, mask: int) -> Learner:
    if rank:
        return Adapted(model, order.device, rank, mask)
    return Whole(model, order.device)


def _told(laying: Laying, schedule: Schedule, before: Found, after: Found) -> dict[str, object]:
    """What the config says of it."""
    return {
        "format": 1,
        "attention": "block_causal",
        "block": laying.block,
        "shifted": laying.shifted,
        "mask_id": laying.mask,
        "end_ids": [laying.end],
        "preset": "threshold",
        "trained": {
            "steps": schedule.steps,
            "texts": schedule.steps * schedule.texts,
            "before": asdict(before),
            "after": asdict(after),
        },
    }


def _lines(before: Found, after: Found) -> tuple[str, ...]:
    return (
        f"open slots, half of a block: {after.slots} of texts that were not learnt from",
        f"cross entropy {before.cross_entropy:.3f} nats before, {after.cross_entropy:.3f} after",
        f"likeliest token right {before.accuracy:.1%} before, {after.accuracy:.1%} after",
    )


KIND: Final = Kind(
    "block",
    "a causal chat model becomes one that fills blocks (BD3-LM's layout, thin maps or all weights)",
    Schedule(steps=1200, texts=2, longest=280, rate=1.5e-3, warm_up=0.01, keep_every=20),
    SETTINGS,
    _train,
    frozenset({"model", "data", "device"}),
)
