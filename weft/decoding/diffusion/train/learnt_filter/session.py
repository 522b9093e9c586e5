"""A whole training of a filter: texts, looks at them, steps, a folder, how far it can be trusted.

Knows no terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from weft.core.errors import InputError
from weft.decoding.diffusion.adapter import ModelAdapter
from weft.decoding.diffusion.policies import finality
from weft.decoding.diffusion.policies.finality import Finality
from weft.decoding.diffusion.train.learnt_filter.replay import Looks, replayed
from weft.decoding.diffusion.train.order import (
    CHECKPOINT,
    Hearing,
    Kind,
    Order,
    Trained,
    open_folder,
)
from weft.decoding.diffusion.train.own_prompts import Prompt, prompts_of
from weft.decoding.diffusion.train.own_texts import model_of, written
from weft.decoding.network.cores import model_threads
from weft.decoding.train.frame import Progress, Schedule, Trainer
from weft.decoding.train.news import Measures, Writes

_HELD_OUT_EVERY: Final = 10
_THRESHOLDS: Final = (0.9, 0.96)


class FilterLesson:
    """Learns whether predictions are final: binary cross entropy over open slots."""

    def __init__(self, slots: int, hidden: int, seed: int) -> None:
        torch.manual_seed(seed)
        self.module = torch.nn.Sequential(
            torch.nn.Linear(slots, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, slots)
        )
        """So small that it is taught on the CPU, wherever the model computes."""

    def loss(self, batch: Looks, chance: np.random.Generator) -> torch.Tensor:  # noqa: ARG002
        """The mean over open slots."""
        odds = self.module(torch.from_numpy(batch.confidences))
        judged = torch.from_numpy(batch.open)
        right = torch.from_numpy(batch.right).float()
        return binary_cross_entropy_with_logits(odds[judged], right[judged])

    @property
    def finality(self) -> Finality:
        """The filter as it is now."""
        inward, _, outward = self.module
        parts = (inward.weight, inward.bias, outward.weight, outward.bias)
        return Finality(*(part.detach().numpy().copy() for part in parts))


class LooksSource:
    """Draws from `looks`, once they are there."""

    looks: Looks

    def draw(self, chance: np.random.Generator, texts: int, longest: int) -> Looks:  # noqa: ARG002
        """`texts` of them; all, where there are fewer."""
        if texts >= len(self.looks):
            return self.looks
        return self.looks.at(chance.choice(len(self.looks), texts, replace=False))


def _train(order: Order, resume: bool, hearing: Hearing) -> Trained | None:
    if order.model is None:
        raise InputError("a filter is for one model", hint="--model NAME or FOLDER")
    settings, schedule = KIND.set_to(order), KIND.scheduled(order)
    if not settings["hidden"] or not settings["texts"]:
        raise InputError("neither texts nor what is hidden can be none")
    open_folder(order, resume)
    torch.set_num_threads(order.threads or model_threads())
    adapter = model_of(order)
    prompts = prompts_of(order, adapter.traits)
    room = settings["slots"] or prompts.slots
    slots = adapter.traits.block or room
    lesson = FilterLesson(slots, settings["hidden"], schedule.seed)
    source = LooksSource()
    trainer = Trainer[Looks](lesson, source, schedule, order.out / CHECKPOINT)
    if resume:
        trainer.resume()
    asked = prompts.drawn(settings["texts"], room, np.random.default_rng(schedule.seed))
    looks = _looks(adapter, asked, room, slots, hearing)
    if looks is None:
        trainer.keep()  # looks are the same when they are made again
        return None
    if len(looks) < _HELD_OUT_EVERY:
        raise InputError(
            f"{len(looks)} looks at predictions are too few to learn from",
            hint=f"write more texts: --set texts={KIND.settings['texts']}",
        )
    held = np.arange(len(looks)) % _HELD_OUT_EVERY == _HELD_OUT_EVERY - 1
    source.looks = looks.at(np.flatnonzero(~held))
    losses: list[float] = []

    def tell(progress: Progress) -> None:
        losses[:] = [progress.loss]
        hearing.on_news(progress)

    if not trainer.run(tell, hearing.stop):
        return None
    rest = looks.at(np.flatnonzero(held))
    hearing.on_news(Measures(len(rest)))
    lines = tuple(_trusted(lesson.finality, rest))
    told = {"looks": len(looks), "steps": schedule.steps}
    finality.save(order.out, lesson.finality, adapter.traits.digest, told)
    (order.out / CHECKPOINT).unlink(missing_ok=True)
    return Trained(KIND.name, order.out, schedule.steps, losses[0] if losses else None, lines)


def _looks(
    adapter: ModelAdapter, asked: Sequence[Prompt], room: int, slots: int, hearing: Hearing
) -> Looks | None:
    """At answers with `room` slots, in windows of `slots`."""
    count = len(asked)
    both = 2 * count
    texts = written(
        adapter, asked, room, lambda done: hearing.on_news(Writes(done, both)), hearing.stop
    )
    if texts is None:
        return None
    return replayed(
        adapter,
        texts,
        slots,
        lambda done: hearing.on_news(Writes(count + done, both)),
        hearing.stop,
    )


def _trusted(judge: Finality, looks: Looks) -> Iterator[str]:
    """A line for each threshold: how much it lets through, and how much of that is wrong."""
    odds = np.array([judge.final(row) for row in looks.confidences.astype(np.float64)])
    for threshold in _THRESHOLDS:
        passed = (odds > threshold) & looks.open
        wrong = int((passed & ~looks.right).sum())
        of = int((looks.right & looks.open).sum())
        yield (
            f"above {threshold}: {int((passed & looks.right).sum())} of {of} final slots let "
            f"through, and {wrong} of {int((~looks.right & looks.open).sum())} that were not"
        )


KIND: Final = Kind(
    "learn2pd",
    "a filter that tells which slots of a diffusion model are final",
    Schedule(steps=3000, texts=2048, longest=1, rate=3e-3, warm_up=0.02, keep_every=500),
    {"slots": 0, "hidden": 32, "texts": 600},
    _train,
    frozenset({"model", "data", "device"}),
)
"""`slots` of an answer; 0: 16 of a list model's, else 64."""
