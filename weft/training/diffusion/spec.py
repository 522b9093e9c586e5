"""What is asked of a training of diffusion models, what comes of it, and the folder it works in.

Knows no kind of training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Final

from weft.core.errors import InputError
from weft.decoding.diffusion.models.folder import FindModel
from weft.training.devices import check_device
from weft.training.frame import Schedule, TrainingNews

CHECKPOINT: Final = "checkpoint.safetensors"
CONFIG: Final = "config.json"


@dataclass(frozen=True, slots=True)
class DiffusionTrainingJob:
    """`schedule` and `settings` replace what a kind has of itself.

    variant   of the list model
    model     what is learnt from, begun with, or trained on; which of these is for the kind
    data      the texts, where a kind needs some
    find      where the base of an adapter is, by its name
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
    """What lies in `folder`. `loss`: of the last step, None when none was left to do. `measured`:
    lines for people, on texts that were not learnt from.
    """

    kind: str
    folder: Path
    steps: int
    loss: float | None
    measured: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TrainingListener:
    """Who is told, and who may stop it after a step."""

    on_news: Callable[[TrainingNews], None] = lambda _news: None
    stop: Callable[[], bool] = lambda: False


TrainFn = Callable[[DiffusionTrainingJob, bool, TrainingListener], DiffusionTrainingResult | None]
"""Given an order, and whether to go on with one that was stopped. None: stopped again."""


@dataclass(frozen=True, slots=True)
class DiffusionTrainerSpec:
    """`settings` are whole numbers with their defaults; `schedule` suits them. `takes`: what of an
    order's variant, model, data and device it has a use for.

    `train` raises `InputError`, `CapabilityError` for a model it is not for, and `OSError`.
    """

    name: str
    summary: str
    schedule: Schedule
    settings: Mapping[str, int]
    train: TrainFn
    takes: frozenset[str] = frozenset({"model"})

    def scheduled(self, order: DiffusionTrainingJob) -> Schedule:
        """Raises: `InputError` for values that cannot be."""
        try:
            return replace(self.schedule, **order.schedule)  # type: ignore[arg-type]
        except (TypeError, ValueError) as error:
            raise InputError(str(error)) from error

    def set_to(self, order: DiffusionTrainingJob) -> dict[str, int]:
        """All settings. Raises: `InputError` for others, or below 0, and for what it cannot use."""
        for name in ("variant", "model", "data"):
            if getattr(order, name) is not None and name not in self.takes:
                raise InputError(f"{self.name} has no use for a {name}", hint=f"leave --{name} out")
        if order.device != "cpu" and "device" not in self.takes:
            raise InputError(f"{self.name} is trained on the CPU", hint="leave --device out")
        for name, value in order.settings.items():
            if name not in self.settings:
                there = ", ".join(sorted(self.settings)) or "none"
                raise InputError(f"{self.name} has no setting {name!r}", hint=f"there is {there}")
            if value < 0:
                raise InputError(f"{name} must be a whole number from 0, not {value!r}")
        return {**self.settings, **order.settings}


def open_folder(order: DiffusionTrainingJob, resume: bool) -> None:
    """Make the folder, unless something of value is there. Raises: `InputError`, `OSError`."""
    out = order.out
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is no folder")
    if (out / CONFIG).exists():
        raise InputError(f"{out} holds a model already", hint="name another folder")
    if resume != (out / CHECKPOINT).exists():
        there = "no training to go on with" if resume else "a training that has not ended"
        hint = "without --resume one begins" if resume else "--resume goes on with it"
        raise InputError(f"{out} holds {there}", hint=hint)
    check_device(order.device)
    out.mkdir(parents=True, exist_ok=True)


_HERE: Final = "weft.training.diffusion."
KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "block": "block.conversion",
        "dparallel": "parallel_decoding.dparallel",
        "learn2pd": "parallel_decoding.learn2pd",
        "list": "list_model.session",
    }
)
"""By name: the module, which has `KIND`."""


def kind_of(name: str) -> DiffusionTrainerSpec:
    """The kind of that name. Raises: `InputError` with those there are."""
    if name not in KINDS:
        there = ", ".join(sorted(KINDS))
        raise InputError(f"no diffusion model {name!r} can be trained", hint=f"one of {there}")
    kind: DiffusionTrainerSpec = import_module(_HERE + KINDS[name]).KIND
    return kind
