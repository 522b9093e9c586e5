"""`weft train-diffusion`: trains models that write in any order, and what makes them faster."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.commands.options import AsJson, Debug
from weft.cli.commands.train_drafter import print_kinds, whole_numbers
from weft.cli.complaint import complaints
from weft.cli.exit_codes import MEANINGS, ExitCode
from weft.cli.text import clean

if TYPE_CHECKING:
    from weft.workflow.diffusion_training import Order, Trained

_STATUS = "\n".join(
    f"  {code:<5d}{MEANINGS[code]}"
    for code in (ExitCode.SUCCEEDED, ExitCode.FAILED, ExitCode.INVALID, ExitCode.INTERRUPTED)
)
HELP = f"""Train a diffusion model, or a part that decodes one faster.

list: a small model of list operations, from nothing. block: a chat model that fills blocks.
dparallel: a list model that is certain of more slots at once. learn2pd: a filter that tells which
slots are final. Ctrl-C leaves a checkpoint, and --resume goes on from it.

\b
  weft train-diffusion --list
  weft train-diffusion list --variant full --out lists/
  weft train-diffusion learn2pd --model lists/ --out filter/

\b
Exit status:
{_STATUS}
"""


def train_diffusion(
    kind: Annotated[
        str | None, typer.Argument(metavar="KIND", help="What to train: see --list.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Where it shall lie.")] = None,
    variant: Annotated[
        str | None,
        typer.Option(metavar="V", help="Of the list model: full, block, or ar for its twin."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", metavar="MODEL", help="To begin with; a name, or a folder."),
    ] = None,
    data: Annotated[
        str | None, typer.Option(metavar="FILE", help="Conversations, for block; else made.")
    ] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", help="How long to train.")] = None,
    rate: Annotated[float | None, typer.Option(metavar="R", help="The learning rate.")] = None,
    texts: Annotated[int | None, typer.Option(metavar="N", help="Texts in a step.")] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Makes it repeatable.", min=0)] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=N", help="A setting of the kind; repeat it for more."),
    ] = None,
    device: Annotated[str, typer.Option(metavar="DEVICE", help="cpu, or cuda.")] = "cpu",
    threads: Annotated[
        int | None, typer.Option(metavar="N", help="Cores to use; all but one.", min=1)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with what is in the folder.")
    ] = False,
    list_all: Annotated[
        bool, typer.Option("--list", help="Print what can be trained, with its settings.")
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """See `HELP`."""
    with complaints(debug=debug, as_json=as_json):
        from weft.workflow.diffusion_training import Order, all_kinds, model_folder

        if list_all:
            print_kinds(all_kinds(), as_json=as_json)
            return
        if kind is None or out is None:
            raise typer.BadParameter("is missing", param_hint="KIND" if kind is None else "--out")
        schedule = {"steps": steps, "rate": rate, "texts": texts, "seed": seed}
        order = Order(
            kind=kind,
            out=out,
            variant=variant,
            model=None if model is None else model_folder(model),
            data=data,
            schedule={name: value for name, value in schedule.items() if value is not None},
            settings=whole_numbers(settings or []),
            threads=threads,
            device=device,
        )
        code = _train(order, resume=resume, as_json=as_json)
    raise typer.Exit(code)


def _train(order: Order, *, resume: bool, as_json: bool) -> ExitCode:
    from weft.cli.console import stderr
    from weft.cli.training import TrainingProgress, stopping
    from weft.workflow.diffusion_training import Hearing, train

    with stopping() as stop, TrainingProgress(stderr()) as progress:
        trained = train(order, resume=resume, hearing=Hearing(progress, stop))
    if trained is None:
        if as_json:
            typer.echo(json.dumps({"status": "interrupted", "folder": str(order.out)}))
        typer.echo("stopped; the same command with --resume goes on", err=True)
        return ExitCode.INTERRUPTED
    if as_json:
        described = {**asdict(trained), "folder": str(trained.folder), "status": "succeeded"}
        typer.echo(json.dumps(described))
    else:
        _print(trained)
    return ExitCode.SUCCEEDED


def _print(trained: Trained) -> None:
    typer.echo(f"{trained.kind} is in {clean(str(trained.folder))}: {trained.steps} steps")
    if trained.loss is not None:
        typer.echo(f"loss of the last step: {trained.loss:.3f}")
    for line in trained.measured:
        typer.echo(f"  {line}")
