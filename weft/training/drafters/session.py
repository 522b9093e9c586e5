"""A whole training, from prompts to the folder of a drafter: texts, steps, measurement.

Knows no terminal: progress is told to whoever asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import torch

from weft.core.errors import InputError
from weft.decoding.network.network import Network
from weft.decoding.network.options import NetworkOptions, model_threads
from weft.decoding.speculative import trained_drafter
from weft.training.corpus import Corpus
from weft.training.devices import check_device
from weft.training.distillation import DistillationOptions, distil
from weft.training.drafters.spec import DrafterSpec, kind_of
from weft.training.frame import (
    EvaluationStarted,
    Schedule,
    StepProgress,
    TextsWritten,
    Trainer,
    TrainingNews,
)
from weft.training.prompts import Tokenizer, read_prompts
from weft.training.starter_prompts import starter_prompts
from weft.training.teacher import Teacher

STARTER: Final = "starter"
"""Stands for the prompts that come with weft."""
CHECKPOINT: Final = "checkpoint.safetensors"
_CORPUS: Final = "corpus.safetensors"
_HELD_OUT_EVERY: Final = 10


@dataclass(frozen=True, slots=True)
class DrafterTrainingJob:
    """What is to be trained, for which model, from which prompts, and where it shall lie.

    `schedule` and `settings` replace what the kind has of itself. `corpus`: the file of the texts,
    in `out` where it is None.
    """

    kind: str
    model: Path
    prompts: str
    out: Path
    corpus: Path | None = None
    writing: DistillationOptions = field(default_factory=DistillationOptions)
    schedule: Mapping[str, int | float] = field(default_factory=dict)
    settings: Mapping[str, int] = field(default_factory=dict)
    threads: int | None = None
    device: str = "cpu"


@dataclass(frozen=True, slots=True)
class DrafterTrainingResult:
    """The drafter in `folder`. `loss` is that of its last step, None when none was left to do."""

    kind: str
    folder: Path
    steps: int
    loss: float | None
    texts: int
    answer_tokens: int
    settings: Mapping[str, object]


def train(
    order: DrafterTrainingJob,
    *,
    resume: bool = False,
    on_news: Callable[[TrainingNews], None] = lambda _news: None,
    stop: Callable[[], bool] = lambda: False,
) -> DrafterTrainingResult | None:
    """Train a drafter. None when `stop` said so: what there is by then is kept for `resume`.

    Raises: `InputError`, `CapabilityError` for a model that cannot run here, `OSError`.
    """
    kind = kind_of(order.kind)
    settings = kind.set_to(order.settings)
    schedule = _schedule(kind, order.schedule)
    check_device(order.device)
    _look_first(order, resume)
    corpus = _written(order, on_news, stop)
    if corpus is None:
        return None
    torch.set_num_threads(order.threads or model_threads())
    teacher = Teacher.load(order.model, order.device)
    learnt_from, held_out = corpus.on(teacher.device).split(_HELD_OUT_EVERY)
    course = kind.begin(teacher, learnt_from, settings, schedule.seed)
    trainer = Trainer(course, learnt_from, schedule, order.out / CHECKPOINT)
    if (order.out / CHECKPOINT).exists():
        trainer.resume()
    losses: list[float] = []

    def tell(progress: StepProgress) -> None:
        losses[:] = [progress.loss]
        on_news(progress)

    if not trainer.run(tell, stop):
        return None
    trainer.keep()  # measuring takes a while, too
    on_news(EvaluationStarted(len(held_out.texts)))
    with torch.no_grad():
        made = course.made(held_out)
    trained_drafter.save(order.out, kind.name, made.settings, made.tensors, teacher)
    (order.out / CHECKPOINT).unlink(missing_ok=True)
    return DrafterTrainingResult(
        kind.name,
        order.out,
        schedule.steps,
        losses[0] if losses else None,
        len(learnt_from.texts),
        learnt_from.answer_tokens,
        made.settings,
    )


def _schedule(kind: DrafterSpec, given: Mapping[str, int | float]) -> Schedule:
    try:
        return replace(kind.schedule, **given)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise InputError(str(error)) from error


def _look_first(order: DrafterTrainingJob, resume: bool) -> None:
    """Make the folder, unless something of value is there."""
    out, checkpoint = order.out, order.out / CHECKPOINT
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is no folder")
    if (out / trained_drafter.CONFIG).exists():
        raise InputError(f"{out} holds a drafter already", hint="name another folder")
    if not resume and checkpoint.exists():
        raise InputError(
            f"{out} holds a training that has not ended",
            hint="--resume goes on with it; or name another folder",
        )
    if resume and not checkpoint.exists() and not _texts_of(order).exists():
        raise InputError(f"there is nothing to go on with in {out}")
    out.mkdir(parents=True, exist_ok=True)


def _texts_of(order: DrafterTrainingJob) -> Path:
    return order.corpus or order.out / _CORPUS


def _written(
    order: DrafterTrainingJob, on_news: Callable[[TrainingNews], None], stop: Callable[[], bool]
) -> Corpus | None:
    """The texts: those that are there, and what the target writes now."""
    asked = starter_prompts() if order.prompts == STARTER else read_prompts(Path(order.prompts))
    tokenizer = Tokenizer(order.model)
    prompts = [tokenizer.encode(conversation) for conversation in asked]
    options = NetworkOptions(device=order.device, threads=order.threads)
    try:
        network = Network.load(order.model, options)
    except (OSError, ValueError) as error:
        raise InputError(f"{order.model} is no model: {error}") from error
    return distil(
        network,
        prompts,
        _texts_of(order),
        order.writing,
        lambda done, total: on_news(TextsWritten(done, total)),
        stop,
    )
