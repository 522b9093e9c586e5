"""A whole training of a list model: texts made on the fly, steps, a folder, what it can do.

Knows no terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import torch

from weft.core.errors import InputError
from weft.decoding.diffusion.oracle.closed_forms import ONE_STEP, one_step
from weft.decoding.diffusion.oracle.languages import DETERMINISTIC, LANGUAGES
from weft.decoding.diffusion.train.lists import network
from weft.decoding.diffusion.train.lists.examine import Reader, questions, validity
from weft.decoding.diffusion.train.lists.lesson import CausalLesson, MaskedLesson
from weft.decoding.diffusion.train.lists.source import LONGEST, ListSource, Texts
from weft.decoding.diffusion.train.order import (
    CHECKPOINT,
    Hearing,
    Kind,
    Order,
    Trained,
    open_folder,
)
from weft.decoding.network.cores import model_threads
from weft.decoding.train.frame import Progress, Schedule, Trainer
from weft.decoding.train.muon import Muon
from weft.decoding.train.news import Measures

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM

_ITEMS: Final = 5


def _train(order: Order, resume: bool, hearing: Hearing) -> Trained | None:
    variant = _variant(order.variant)
    settings, schedule = KIND.set_to(order), KIND.scheduled(order)
    network.check_size(settings["width"], settings["layers"])
    open_folder(order, resume)
    torch.set_num_threads(order.threads or model_threads())
    model = network.new(settings["width"], settings["layers"], schedule.seed)
    if order.model is not None:
        network.begin_with(model, order.model)
    lesson = _lesson(model, variant)
    trainer = Trainer[Texts](
        lesson, ListSource(), schedule, order.out / CHECKPOINT, optimiser=_optimiser
    )
    if resume:
        trainer.resume()
    losses: list[float] = []

    def tell(progress: Progress) -> None:
        losses[:] = [progress.loss]
        hearing.on_news(progress)

    if not trainer.run(tell, hearing.stop):
        return None
    trainer.keep()  # examining takes a while, too
    count = settings["examined"]
    hearing.on_news(Measures(count * len(LANGUAGES)))
    reader = Reader(model, lesson.block, variant == "ar")
    lines = []
    for line in _examined(reader, count, schedule.seed) if count else ():
        if hearing.stop():
            return None
        lines.append(line)
    network.save(model, order.out, variant)
    (order.out / CHECKPOINT).unlink(missing_ok=True)
    loss = losses[0] if losses else None
    return Trained(KIND.name, order.out, schedule.steps, loss, tuple(lines))


def _variant(name: str | None) -> network.Variant:
    for variant in network.VARIANTS:
        if variant == name:
            return variant
    there = ", ".join(network.VARIANTS)
    raise InputError(f"there is no list model {name!r}", hint=f"--variant is one of {there}")


def _lesson(model: LlamaForCausalLM, variant: network.Variant) -> MaskedLesson | CausalLesson:
    if variant == "ar":
        return CausalLesson(model)
    return MaskedLesson(model, network.BLOCK if variant == "block" else 0)


def _optimiser(
    learnt: Mapping[str, torch.nn.Parameter], schedule: Schedule
) -> torch.optim.Optimizer:
    """Muon for what stands between embeddings and head."""
    inner = {name: p for name, p in learnt.items() if p.ndim == 2 and ".layers." in name}
    others = [p for name, p in learnt.items() if name not in inner]
    return Muon(inner.values(), others, schedule.rate, schedule.decay)


def _examined(reader: Reader, count: int, seed: int) -> Iterator[str]:
    """A line for each operation."""
    for name in LANGUAGES:
        n = min(_ITEMS, LANGUAGES[name].longest)
        asked = questions(name, n, count, seed)
        chance = None if name in DETERMINISTIC else np.random.default_rng(seed)
        one_by_one = validity(reader, asked, 0, chance)
        line = f"{name} of {n}: {one_by_one:.1%} valid one by one"
        if not reader.causal:
            line += f", {validity(reader, asked, 1, chance):.1%} in one step"
            if name in ONE_STEP:
                line += f" ({one_step(name, n):.1%} if predictions were true)"
        yield line


KIND: Final = Kind(
    "list",
    "a small model of list operations, from nothing",
    Schedule(steps=3200, texts=80, longest=LONGEST, rate=4e-3, warm_up=0.02, keep_every=200),
    {"width": 128, "layers": 4, "examined": 200},
    _train,
    frozenset({"variant", "model"}),
)
