"""`weft train-planner`: trains a small planner on calls of tools."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli import options
from weft.cli.errors import report_errors
from weft.cli.text import clean
from weft.cli.train_options import (
    STATUS,
    Device,
    Rate,
    Resume,
    Seed,
    Texts,
    Threads,
    given_values,
    model_folder,
    run_training,
)
from weft.core.extras import optional_packages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.agents.calls.turns import PlannerTurn
    from weft.training.planner.session import PlannerTrainingJob, PlannerTrainingResult
    from weft.training.planner.texts import PlannerExample

HELP = f"""Train a small planner: a chat model learns to write the calls that answer a question.

The data comes from `weft generate-calls`. Some tools are held out: no item that is trained on names
one, and the planner is measured on calls of them at every checkpoint. The folder has an adapter of
the model; `weft ask --model local:FOLDER` plans with it. Ctrl-C leaves a checkpoint, and --resume
goes on from it.

\b
  weft generate-calls --tools tools.jsonl --n 8000 --out calls.jsonl
  weft train-planner --data calls.jsonl --out planner/
  weft ask "..." --tools ./tools.py --model local:planner/

\b
Exit status:
{STATUS}
"""
_HELD_OUT = 5
_RANK = 32
_MOST_TESTED = 96


def train_planner(
    data: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE",
            help="Items of `weft generate-calls`. Repeat it for more.",
            exists=True,
            dir_okay=False,
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where it shall lie.")],
    model: Annotated[
        str,
        typer.Option(
            "--model", "-m", metavar="MODEL", help="To begin with: a chat model, or a planner."
        ),
    ] = options.DEFAULT_MODEL,
    held_out: Annotated[
        int, typer.Option(metavar="P", help="Per cent of the tools to test on.", min=1, max=50)
    ] = _HELD_OUT,
    epochs: Annotated[
        int, typer.Option(metavar="N", help="How often each item is read.", min=1)
    ] = 1,
    rank: Annotated[
        int, typer.Option(metavar="N", help="Of the low-rank updates.", min=1, max=256)
    ] = _RANK,
    lowest: Annotated[
        int,
        typer.Option(metavar="N", help="The first layer that is trained: higher is faster.", min=0),
    ] = 0,
    rate: Rate = None,
    texts: Texts = None,
    longest: Annotated[
        int, typer.Option(metavar="N", help="Leave out items of more tokens.", min=16)
    ] = 768,
    keep_every: Annotated[
        int, typer.Option(metavar="N", help="Steps between two checkpoints.", min=1)
    ] = 100,
    lookups: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Add N questions over invented tables, with calls that use one another's results, "
            "and answers from results.",
            min=0,
        ),
    ] = 0,
    snapshots: Annotated[
        bool, typer.Option("--snapshots", help="Keep the planner of each checkpoint.")
    ] = False,
    seed: Seed = 0,
    device: Device = "cpu",
    threads: Threads = None,
    resume: Resume = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """See `HELP`."""
    with report_errors(debug=debug, as_json=as_json):
        with optional_packages("training"):
            from weft.training.diffusion.spec import TrainingListener
            from weft.training.planner.session import train
        schedule = given_values(
            rate=rate, texts=texts, seed=seed, longest=longest, keep_every=keep_every
        )
        turns = _turns(data, lookups, seed)
        job = _job(
            turns,
            out,
            model,
            held_out / 100,
            schedule,
            epochs=epochs,
            rank=rank,
            lowest=lowest,
            snapshots=snapshots,
            device=device,
            threads=threads,
        )
        code = run_training(
            lambda progress, stop: train(job, resume, TrainingListener(progress, stop)),
            out,
            _print,
            as_json=as_json,
        )
    raise typer.Exit(code)


def _turns(data: Sequence[Path], lookups: int, seed: int) -> list[PlannerTurn]:
    """The turns of all files, and of `lookups` generated items. Raises: `InputError`."""
    from weft.agents.calls.lookups import lookup_items
    from weft.agents.calls.turns import read_turns, turns_of

    turns = [turn for file in data for turn in read_turns(file)]
    return turns + [turn for item in lookup_items(lookups, seed) for turn in turns_of(item)]


def _job(
    turns: Sequence[PlannerTurn],
    out: Path,
    model: str,
    share: float,
    schedule: dict[str, int | float],
    **settings: Any,
) -> PlannerTrainingJob:
    """Split the data by tools. Raises: `InputError`, `ModelNotFound`."""
    from weft.agents.calls.turns import split_turns
    from weft.core.errors import InputError
    from weft.planner.compact import COMPACT
    from weft.serving.weights import locate
    from weft.training.frame import Schedule
    from weft.training.planner.session import PlannerTrainingJob

    folder = model_folder(model)
    seed = int(schedule["seed"])
    learnt, test = split_turns(turns, share, seed)
    if not learnt or not test:
        raise InputError(
            f"{len(turns)} turns leave {len(learnt)} to train on and {len(test)} to test on",
            hint="give more items, of more tools, or another --held-out",
        )
    record = {
        "turns": len(turns),
        "train_turns": len(learnt),
        "test_turns": len(test),
        "held_out_tools": round(share, 4),
    }
    try:
        plan = Schedule(**{"steps": 1, "texts": 16, "warm_up": 0.05, **schedule})  # type: ignore[arg-type]
    except ValueError as error:
        raise InputError(str(error)) from error
    few = Random(seed).sample(test, min(len(test), _MOST_TESTED))  # noqa: S311 - no secret
    examples, tests = _examples(learnt), _examples(few)
    return PlannerTrainingJob(
        folder, out, examples, tests, COMPACT, plan, record=record, find=locate, **settings
    )


def _examples(turns: Sequence[PlannerTurn]) -> list[PlannerExample]:
    from weft.training.planner.texts import PlannerExample

    return [
        PlannerExample(
            tuple((message.role, message.content) for message in turn.messages),
            turn.answer,
            turn.calls,
        )
        for turn in turns
    ]


def _print(trained: PlannerTrainingResult) -> None:
    after = trained.after
    typer.echo(f"the planner is in {clean(str(trained.folder))}: {trained.steps} steps")
    typer.echo(f"  trained on {trained.examples} turns")
    typer.echo(
        f"  {after.texts} turns with tools that it has never seen: {after.exact:.1%} written"
        f" exactly, cross entropy {after.cross_entropy:.3f}"
    )
