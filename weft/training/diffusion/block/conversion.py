"""The conversion of a causal chat model into one that fills blocks, with its evaluation.

Open slots of a block are predicted from its decided slots and all before it: BD3-LM (arXiv
2503.09573), with the shift and the complementary noise of Fast-dLLM v2 (2509.26328). Blocks grow
from one slot, which is next-token prediction (NBDiff).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from weft.core.errors import InputError
from weft.training.diffusion.block import corpora
from weft.training.diffusion.block.corpora import ConversationSource, TokenizedBatch, TokenizedText
from weft.training.diffusion.block.forms import copy_form
from weft.training.diffusion.block.layout import (
    Ids,
    LayoutBuilder,
    NoiseSampler,
    NoisyCopy,
    TrainingLayout,
)
from weft.training.diffusion.block.learner import BlockLearner, FullLearner, LoraLearner
from weft.training.diffusion.spec import (
    CHECKPOINT,
    DiffusionTrainerSpec,
    DiffusionTrainingJob,
    DiffusionTrainingResult,
    TrainingListener,
    finish,
    prepare,
    run_steps,
)
from weft.training.frame import BatchSource, EvaluationStarted, Schedule, Trainer

_HALF: Final = 0.5


@dataclass(frozen=True, slots=True)
class BlockSizeSchedule:
    """The block size by step: from 1, doubled every `every` steps up to `block`; 0: constant."""

    block: int
    every: int

    def at(self, step: int) -> int:
        """The block size of a step, from 0."""
        return self.block if not self.every else min(self.block, 1 << min(step // self.every, 16))


@dataclass(frozen=True, slots=True)
class BlockAccuracy:
    """Results on held-out texts with half of the slots open: cross entropy in nats of an open slot,
    and the share of open slots whose likeliest token is right.
    """

    cross_entropy: float
    accuracy: float
    slots: int


class BlockObjective:
    """Trains `learner` to fill blocks."""

    def __init__(
        self,
        learner: BlockLearner,
        builder: LayoutBuilder,
        noise: NoiseSampler,
        growth: BlockSizeSchedule,
    ) -> None:
        self.module = learner.module
        self._learner = learner
        self._builder = builder
        self._noise = noise
        self._growth = growth
        self.grow_to(0)

    def grow_to(self, step: int) -> None:
        """Use the block size of `step` from now on."""
        self._current = replace(self._builder, block=self._growth.at(step))

    def loss(self, batch: TokenizedBatch, rng: np.random.Generator) -> torch.Tensor:
        """Raises: `InputError` for a batch without a slot to learn."""
        layouts = self._laid(batch.texts, self._current, rng)
        logits, goals = self._predicted(layouts)
        wrong = cross_entropy(logits, goals, reduction="none")
        weights = torch.from_numpy(np.concatenate([layout.weights for layout in layouts])).to(wrong)
        return (wrong * weights).sum() / weights.sum().clamp(min=1.0)

    def examine(
        self,
        held_out: Sequence[TokenizedText],
        texts: int,
        stop: Callable[[], bool] = lambda: False,
    ) -> BlockAccuracy | None:
        """Evaluate `texts` at once, with the final block size and the same noise every time.

        None if `stop` returned true.
        """
        rng = np.random.default_rng(0)
        total, right, slots = 0.0, 0, 0
        pages = sorted(held_out, key=lambda page: len(page.tokens))
        with torch.no_grad():
            for first in range(0, len(pages), texts):
                if stop():
                    return None
                laid = self._laid(pages[first : first + texts], self._builder, rng, _HALF)
                logits, goals = self._predicted(laid)
                total += float(cross_entropy(logits, goals, reduction="sum"))
                right += int((logits.argmax(-1) == goals).sum())
                slots += len(goals)
        return BlockAccuracy(total / slots, right / slots, slots)

    def _laid(
        self,
        pages: Sequence[TokenizedText],
        builder: LayoutBuilder,
        rng: np.random.Generator,
        level: float | None = None,
    ) -> list[TrainingLayout]:
        """Layouts of texts whose answers begin in a whole block of the text."""
        layouts = []
        for page in pages:
            slots = builder.slots(page.tokens)
            if page.answer < len(slots):
                copies = self._copies(page, slots, builder, rng, level)
                layouts.append(builder.layout(slots, copies))
        if not any(len(layout.goals) for layout in layouts):
            raise InputError(
                "there is nothing to learn in these texts: they are cut off before their answers",
                hint="read more tokens of each text",
            )
        return layouts

    def _copies(
        self,
        page: TokenizedText,
        slots: Ids,
        builder: LayoutBuilder,
        rng: np.random.Generator,
        level: float | None,
    ) -> list[NoisyCopy]:
        if page.form is not None:
            return [copy_form(page.form, slots, page.answer, builder, rng, level) for _ in range(2)]
        noises = self._noise.drawn(len(slots), page.answer, builder.block, rng, level)
        return [builder.noisy(slots, page.answer, noise) for noise in noises]

    def _predicted(self, layouts: Sequence[TrainingLayout]) -> tuple[torch.Tensor, torch.Tensor]:
        """The logits [goals, vocabulary] and the goals of all layouts in one pass."""
        rows = max(len(layout.ids) for layout in layouts)
        ids = torch.zeros(len(layouts), rows, dtype=torch.int64)
        slots = torch.zeros_like(ids)
        sees = torch.eye(rows, dtype=torch.bool).repeat(len(layouts), 1, 1)  # padding rows, too
        predictors = []
        for text, layout in enumerate(layouts):
            count = len(layout.ids)
            ids[text, :count] = torch.from_numpy(layout.ids)
            slots[text, :count] = torch.from_numpy(layout.slots)
            sees[text, :count, :count] = torch.from_numpy(layout.sees)
            predictors.append(torch.from_numpy(layout.predictors) + text * rows)
        goals = torch.from_numpy(np.concatenate([layout.goals for layout in layouts]))
        logits = self._learner.logits(ids, slots, sees, torch.cat(predictors))
        return logits, goals.to(logits.device)


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
"""block: slots of a block. rank: of the low-rank updates; 0 trains all weights, for GPUs and more
data. shifted: a slot is predicted by the one before it, as the causal model does. complement,
weighted: of noise. forms: every second generated text is a form with open values. grow: steps after
which blocks double, from one slot; 0: full size from the start. held_out: number of generated texts
to evaluate on.
"""


def _train(
    job: DiffusionTrainingJob, resume: bool, listener: TrainingListener
) -> DiffusionTrainingResult | None:
    if job.model is None:
        raise InputError("a conversion begins with a causal model", hint="--model NAME or FOLDER")
    settings, schedule = KIND.set_to(job), KIND.scheduled(job)
    if not settings["block"] or not settings["held_out"]:
        raise InputError("neither blocks nor held-out texts can be none")
    prepare(job, schedule, resume)
    texts = corpora.ConversationEncoder(job.model)
    source, held_out = _texts(job, texts, settings)
    builder = LayoutBuilder(
        settings["block"], texts.mask, texts.end, shifted=bool(settings["shifted"])
    )
    learner = _learner(job, job.model, settings["rank"], texts.mask)
    objective = _objective(learner, builder, settings)
    listener.on_news(EvaluationStarted(len(held_out)))
    before = objective.examine(held_out, schedule.texts, listener.stop)
    trainer = Trainer[TokenizedBatch](objective, source, schedule, job.out / CHECKPOINT)
    if before is None:
        if not resume:
            trainer.keep()  # nothing is trained yet; an existing checkpoint is of a later step
        return None
    if resume:
        trainer.resume()
    objective.grow_to(trainer.step)
    losses = run_steps(trainer, listener, lambda progress: objective.grow_to(progress.step))
    if losses is None:
        return None
    listener.on_news(EvaluationStarted(len(held_out)))
    after = objective.examine(held_out, schedule.texts, listener.stop)
    if after is None:
        return None
    learner.save(job.out, _config(builder, schedule, before, after))
    return finish(KIND.name, job, schedule.steps, losses, _lines(before, after))


def _objective(
    learner: BlockLearner, builder: LayoutBuilder, settings: Mapping[str, int]
) -> BlockObjective:
    noise = NoiseSampler(bool(settings["complement"]), bool(settings["weighted"]))
    return BlockObjective(
        learner, builder, noise, BlockSizeSchedule(builder.block, settings["grow"])
    )


def _texts(
    job: DiffusionTrainingJob, texts: corpora.ConversationEncoder, settings: Mapping[str, int]
) -> tuple[BatchSource[TokenizedBatch], list[TokenizedText]]:
    if job.data in {None, corpora.NARROW}:
        made = corpora.DocumentSource(texts, forms=bool(settings["forms"]))
        return made, made.held_out(settings["held_out"])
    learnt, held_out = corpora.read_conversations(Path(str(job.data)), texts).split(_HELD_OUT_EVERY)
    longest = max(len(text.tokens) for text in held_out.texts)
    return ConversationSource(learnt), [TokenizedText.of(text, longest) for text in held_out.texts]


def _learner(job: DiffusionTrainingJob, model: Path, rank: int, mask: int) -> BlockLearner:
    if rank:
        return LoraLearner(model, job.device, rank, mask)
    return FullLearner(model, job.device)


def _config(
    builder: LayoutBuilder, schedule: Schedule, before: BlockAccuracy, after: BlockAccuracy
) -> dict[str, object]:
    """The trained model's config."""
    return {
        "format": 1,
        "attention": "block_causal",
        "block": builder.block,
        "shifted": builder.shifted,
        "mask_id": builder.mask,
        "end_ids": [builder.end],
        "preset": "threshold",
        "trained": {
            "steps": schedule.steps,
            "texts": schedule.steps * schedule.texts,
            "before": asdict(before),
            "after": asdict(after),
        },
    }


def _lines(before: BlockAccuracy, after: BlockAccuracy) -> tuple[str, ...]:
    return (
        f"open slots, half of a block: {after.slots} of texts that were not learnt from",
        f"cross entropy {before.cross_entropy:.3f} nats before, {after.cross_entropy:.3f} after",
        f"likeliest token right {before.accuracy:.1%} before, {after.accuracy:.1%} after",
    )


KIND: Final = DiffusionTrainerSpec(
    "block",
    "a causal chat model becomes one that fills blocks (BD3-LM's layout, LoRA or all weights)",
    Schedule(steps=1200, texts=2, longest=280, rate=1.5e-3, warm_up=0.01, keep_every=20),
    SETTINGS,
    _train,
    frozenset({"model", "data", "device"}),
)
