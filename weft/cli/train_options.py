"""Options and output of the training commands."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from weft.cli.errors import statuses
from weft.cli.exit_code import ExitCode
from weft.cli.options import loose_value, pairs
from weft.core.errors import InputError, StoreError

if TYPE_CHECKING:
    from weft.cli.progress_bars import TrainingProgress
    from weft.training.diffusion.spec import DiffusionTrainerSpec, DiffusionTrainingResult
    from weft.training.drafters.session import DrafterTrainingResult
    from weft.training.drafters.spec import DrafterSpec
    from weft.training.planner.session import PlannerTrainingResult

    Trainable = DrafterSpec | DiffusionTrainerSpec
    Trained = DrafterTrainingResult | DiffusionTrainingResult | PlannerTrainingResult

T = TypeVar("T", bound="Trained")
STATUS = statuses((ExitCode.SUCCEEDED, ExitCode.FAILED, ExitCode.INVALID, ExitCode.INTERRUPTED))
KindName = Annotated[str | None, typer.Argument(metavar="KIND", help="What to train: see --list.")]
Steps = Annotated[int | None, typer.Option(metavar="N", help="How long to train.")]
Rate = Annotated[float | None, typer.Option(metavar="R", help="The learning rate.")]
Texts = Annotated[int | None, typer.Option(metavar="N", help="Texts in a step.")]
Seed = Annotated[int, typer.Option(metavar="N", help="Makes it repeatable.", min=0)]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=N", help="A setting of the kind; repeat it for more."),
]
Device = Annotated[str, typer.Option(metavar="DEVICE", help="cpu, or cuda.")]


def _cores(threads: int | None) -> int | None:
    """Raises: `typer.BadParameter` for more threads than cores, which would only be slower."""
    cores = os.cpu_count() or 1
    if threads is not None and threads > cores:
        raise typer.BadParameter(f"{threads} is more than the {cores} cores of this machine")
    return threads


Threads = Annotated[
    int | None,
    typer.Option(metavar="N", help="Cores to use; all but one.", min=1, callback=_cores),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with what is in the folder.")]
ListAll = Annotated[
    bool, typer.Option("--list", help="Print what can be trained, with its settings.")
]


def given_values(**given: float | None) -> dict[str, int | float]:
    """The values that are set."""
    return {name: value for name, value in given.items() if value is not None}


def whole_numbers(texts: Sequence[str]) -> dict[str, int]:
    """Whole numbers by name. Raises: `InputError`, `typer.BadParameter`."""
    numbers = {}
    for name, text in pairs(texts, "--set").items():
        value = loose_value(text)
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"--set {name}: expected a whole number, not {text!r}")
        numbers[name] = value
    return numbers


def model_folder(name: str) -> Path:
    """The folder of a model: a name that `weft model pull` fetched, or a path.

    Raises: `ModelNotFound`.
    """
    from weft.serving.weights import locate

    return locate(name.removeprefix("local:"))


def print_kinds(kinds: Sequence[Trainable], *, as_json: bool) -> None:
    """Print the kinds of training, with their settings."""
    if as_json:
        rows = [{"name": k.name, "summary": k.summary, "settings": dict(k.settings)} for k in kinds]
        typer.echo(json.dumps(rows))
        return
    for k in kinds:
        typer.echo(f"{k.name:<18}  {k.summary}")
        settings = ", ".join(f"{name}={value}" for name, value in k.settings.items())
        typer.echo(
            f"{'':<18}  steps={k.schedule.steps}" + (f"; --set {settings}" if settings else "")
        )


def run_training(
    train: Callable[[TrainingProgress, Callable[[], bool]], T | None],
    out: Path,
    show: Callable[[T], None],
    *,
    as_json: bool,
) -> ExitCode:
    """Call `train` with a progress listener and a stop test, and `show` its result.

    `train` returns None when it was stopped. `out` is the folder of the training.
    """
    from weft.cli.console import stderr
    from weft.cli.progress_bars import TrainingProgress, stopping

    with stopping() as stop, TrainingProgress(stderr()) as progress:
        try:
            trained = train(progress, stop)
        except OSError as error:
            raise StoreError(
                f"the training in {out} cannot be kept: {error.strerror or error}",
                hint="name a folder on a disk with room that you may write to; where there is a "
                "checkpoint, --resume goes on from it",
            ) from error
    if trained is None:
        if as_json:
            typer.echo(json.dumps({"status": "interrupted", "folder": str(out)}))
        typer.echo("stopped; the same command with --resume goes on", err=True)
        return ExitCode.INTERRUPTED
    if as_json:
        described = {**asdict(trained), "folder": str(trained.folder), "status": "succeeded"}
        typer.echo(json.dumps(described))
    else:
        show(trained)
    return ExitCode.SUCCEEDED
