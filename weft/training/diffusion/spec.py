"""Trainings of diffusion models by name: job, result, and working folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

import torch

from weft.core.errors import InputError
from weft.decoding.adapters.folder import FindModel
from weft.decoding.network.options import model_threads
from weft.training.devices import check_device
from weft.training.frame import BatchT, Schedule, StepProgress, Trainer, TrainingNews

CHECKPOINT: Final = "checkpoint.safetensors"
CONFIG: Final = "config.json"


@dataclass(frozen=True, slots=True)
class DiffusionTrainingJob:
    """A training to run; `schedule` and `settings` override those of the kind.

    variant   of the list model
    model     the teacher, the initial model, or the model of a filter, depending on the kind
    data      the texts, where a kind needs them
    find      locates the base of an adapter by its name
    """

    kind: str
    out: Path
    variant: str | None = None
    model: Path | None = None
    data: str | None = None
    schedule: Mapping[str, int | float] = field(default_factory=dict)
    settings: Mapping[str, int] = field(default_factory=dict)
    threads: int | None = None
    device: str = "cpu"
    find: FindModel | None = None


@dataclass(frozen=True, slots=True)
class DiffusionTrainingResult:
    """A trained model. `loss`: of the last step run. `measured`: results as lines of text."""

    kind: str
    folder: Path
    steps: int
    loss: float | None
    measured: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TrainingListener:
    """Callbacks of a training: `on_news` receives progress, `stop` ends it after a step."""

    on_news: Callable[[TrainingNews], None] = lambda _news: None
    stop: Callable[[], bool] = lambda: False


TrainFn = Callable[[DiffusionTrainingJob, bool, TrainingListener], DiffusionTrainingResult | None]
"""Trains a job, or resumes it if the second argument is true. None: stopped."""


@dataclass(frozen=True, slots=True)
class DiffusionTrainerSpec:
    """A kind of training. `settings` are whole numbers with their defaults; `schedule` suits them.
    `takes`: what it uses of a job's variant, model, data and device.

    `train` raises `InputError`, `CapabilityError` for an unsuitable model, and `OSError`.
    """

    name: str
    summary: str
    schedule: Schedule
    settings: Mapping[str, int]
    train: TrainFn
    takes: frozenset[str] = frozenset({"model"})

    def scheduled(self, job: DiffusionTrainingJob) -> Schedule:
        """The schedule of a job. Raises: `InputError` for invalid values."""
        try:
            return replace(self.schedule, **job.schedule)  # type: ignore[arg-type]
        except (TypeError, ValueError) as error:
            raise InputError(str(error)) from error

    def set_to(self, job: DiffusionTrainingJob) -> dict[str, int]:
        """The settings of a job. Raises: `InputError` for unknown, invalid or unused values."""
        for name in ("variant", "model", "data"):
            if getattr(job, name) is not None and name not in self.takes:
                raise InputError(f"{self.name} has no use for a {name}", hint=f"leave --{name} out")
        if job.device != "cpu" and "device" not in self.takes:
            raise InputError(f"{self.name} is trained on the CPU", hint="leave --device out")
        for name, value in job.settings.items():
            if name not in self.settings:
                there = ", ".join(sorted(self.settings)) or "none"
                raise InputError(f"{self.name} has no setting {name!r}", hint=f"there is {there}")
            if value < 0:
                raise InputError(f"{name} must be a whole number from 0, not {value!r}")
        return {**self.settings, **job.settings}


class TrainingPlace(Protocol):
    """What every training job has."""

    @property
    def out(self) -> Path:
        """The folder of the model."""

    @property
    def device(self) -> str:
        """What it is trained on."""

    @property
    def threads(self) -> int | None:
        """Cores to use; None: all but one."""


def open_folder(job: TrainingPlace, resume: bool) -> None:
    """Create the folder, if it has no model or other training. Raises: `InputError`, `OSError`."""
    out = job.out
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is no folder")
    if (out / CONFIG).exists():
        raise InputError(f"{out} holds a model already", hint="name another folder")
    if resume != (out / CHECKPOINT).exists():
        there = "no training to go on with" if resume else "a training that has not ended"
        hint = "without --resume one begins" if resume else "--resume goes on with it"
        raise InputError(f"{out} holds {there}", hint=hint)
    check_device(job.device)
    out.mkdir(parents=True, exist_ok=True)


def prepare(job: TrainingPlace, schedule: Schedule, resume: bool) -> None:
    """Open the folder, and set threads and seed. Raises: as `open_folder`."""
    open_folder(job, resume)
    torch.set_num_threads(job.threads or model_threads())
    torch.manual_seed(schedule.seed)


def run_steps(
    trainer: Trainer[BatchT],
    listener: TrainingListener,
    on_step: Callable[[StepProgress], None] = lambda _progress: None,
) -> list[float] | None:
    """Run the remaining steps, then write a checkpoint before the evaluation.

    Returns the loss of the last step, if there was one; None when `listener.stop` returned true.
    """
    losses: list[float] = []

    def report(progress: StepProgress) -> None:
        losses[:] = [progress.loss]
        on_step(progress)
        listener.on_news(progress)

    if not trainer.run(report, listener.stop):
        return None
    trainer.keep()
    return losses


def finish(
    kind: str, job: DiffusionTrainingJob, steps: int, losses: list[float], lines: Iterable[str]
) -> DiffusionTrainingResult:
    """The result of a complete folder; removes its checkpoint."""
    (job.out / CHECKPOINT).unlink(missing_ok=True)
    return DiffusionTrainingResult(
        kind, job.out, steps, losses[0] if losses else None, tuple(lines)
    )


_HERE: Final = "weft.training.diffusion."
KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "block": "block.conversion",
        "dparallel": "parallel_decoding.dparallel",
        "learn2pd": "parallel_decoding.learn2pd",
        "list": "list_model.session",
    }
)
"""By name: the module with its `KIND`."""


def all_kinds() -> list[DiffusionTrainerSpec]:
    """All kinds, sorted by name."""
    return [kind_of(name) for name in sorted(KINDS)]


def kind_of(name: str) -> DiffusionTrainerSpec:
    """The kind of that name. Raises: `InputError`, which lists the names."""
    if name not in KINDS:
        there = ", ".join(sorted(KINDS))
        raise InputError(f"no diffusion model {name!r} can be trained", hint=f"one of {there}")
    kind: DiffusionTrainerSpec = import_module(_HERE + KINDS[name]).KIND
    return kind
