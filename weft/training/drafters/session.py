"""The training of a drafter, from prompts to its folder: texts, steps, evaluation."""

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
"""Names the prompts that come with weft."""
CHECKPOINT: Final = "checkpoint.safetensors"
_CORPUS: Final = "corpus.safetensors"
_HELD_OUT_EVERY: Final = 10


@dataclass(frozen=True, slots=True)
class DrafterTrainingJob:
    """A training to run: kind, target model, prompts, and output folder.

    `schedule` and `settings` override those of the kind. `corpus`: the file of the texts; None: in
    `out`.
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
    """The drafter in `folder`. `loss` is that of its last step, None if no step was left."""

    kind: str
    folder: Path
    steps: int
    loss: float | None
    texts: int
    answer_tokens: int
    settings: Mapping[str, object]


def train(
    job: DrafterTrainingJob,
    *,
    resume: bool = False,
    on_news: Callable[[TrainingNews], None] = lambda _news: None,
    stop: Callable[[], bool] = lambda: False,
) -> DrafterTrainingResult | None:
    """Train a drafter. None when `stop` returned true: `resume` continues from the files.

    Raises: `InputError`, `CapabilityError` for an unsupported model, `OSError`.
    """
    kind = kind_of(job.kind)
    settings = kind.set_to(job.settings)
    schedule = _schedule(kind, job.schedule)
    check_device(job.device)
    _open_folder(job, resume)
    corpus = _written(job, on_news, stop)
    if corpus is None:
        return None
    torch.set_num_threads(job.threads or model_threads())
    teacher = Teacher.load(job.model, job.device)
    texts, held_out = corpus.on(teacher.device).split(_HELD_OUT_EVERY)
    objective = kind.begin(teacher, texts, settings, schedule.seed)
    trainer = Trainer(objective, texts, schedule, job.out / CHECKPOINT)
    if (job.out / CHECKPOINT).exists():
        trainer.resume()
    losses: list[float] = []

    def report(progress: StepProgress) -> None:
        losses[:] = [progress.loss]
        on_news(progress)

    if not trainer.run(report, stop):
        return None
    trainer.keep()  # before the evaluation
    on_news(EvaluationStarted(len(held_out.texts)))
    with torch.no_grad():
        made = objective.made(held_out)
    trained_drafter.save(job.out, kind.name, made.settings, made.tensors, teacher)
    (job.out / CHECKPOINT).unlink(missing_ok=True)
    return DrafterTrainingResult(
        kind.name,
        job.out,
        schedule.steps,
        losses[0] if losses else None,
        len(texts.texts),
        texts.answer_tokens,
        made.settings,
    )


def _schedule(kind: DrafterSpec, values: Mapping[str, int | float]) -> Schedule:
    try:
        return replace(kind.schedule, **values)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise InputError(str(error)) from error


def _open_folder(job: DrafterTrainingJob, resume: bool) -> None:
    """Create the folder, if it has no drafter or other training."""
    out, checkpoint = job.out, job.out / CHECKPOINT
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is no folder")
    if (out / trained_drafter.CONFIG).exists():
        raise InputError(f"{out} holds a drafter already", hint="name another folder")
    if not resume and checkpoint.exists():
        raise InputError(
            f"{out} holds a training that has not ended",
            hint="--resume goes on with it; or name another folder",
        )
    if resume and not checkpoint.exists() and not _texts_of(job).exists():
        raise InputError(f"there is nothing to go on with in {out}")
    out.mkdir(parents=True, exist_ok=True)


def _texts_of(job: DrafterTrainingJob) -> Path:
    return job.corpus or job.out / _CORPUS


def _written(
    job: DrafterTrainingJob, on_news: Callable[[TrainingNews], None], stop: Callable[[], bool]
) -> Corpus | None:
    """The texts of the file, completed by the target now."""
    conversations = starter_prompts() if job.prompts == STARTER else read_prompts(Path(job.prompts))
    tokenizer = Tokenizer(job.model)
    prompts = [tokenizer.encode(conversation) for conversation in conversations]
    options = NetworkOptions(device=job.device, threads=job.threads)
    try:
        network = Network.load(job.model, options)
    except (OSError, ValueError) as error:
        raise InputError(f"{job.model} is no model: {error}") from error
    return distil(
        network,
        prompts,
        _texts_of(job),
        job.writing,
        lambda done, total: on_news(TextsWritten(done, total)),
        stop,
    )
