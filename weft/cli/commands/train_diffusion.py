"""`weft train-diffusion`: trains diffusion models, and parts that decode them faster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.errors import report_errors
from weft.cli.options import AsJson, Debug
from weft.cli.text import clean
from weft.cli.train_options import (
    STATUS,
    Device,
    KindName,
    ListAll,
    Rate,
    Resume,
    Seed,
    Settings,
    Steps,
    Texts,
    Threads,
    given_values,
    model_folder,
    print_kinds,
    run_training,
    whole_numbers,
)
from weft.core.extras import optional_packages

if TYPE_CHECKING:
    from weft.training.diffusion.spec import DiffusionTrainingResult

HELP = f"""Train a diffusion model, or a part that decodes one faster.

list: a small model of list operations, from nothing. block: a chat model that fills blocks.
dparallel: a model that is certain of more slots at once. learn2pd: a filter that tells which of a
model's slots are final. Ctrl-C leaves a checkpoint, and --resume goes on from it.

\b
  weft train-diffusion --list
  weft train-diffusion list --variant full --out lists/
  weft train-diffusion learn2pd --model lists/ --out filter/
  weft train-diffusion dparallel --model smollm2-block --data prompts.jsonl --out sure/

\b
Exit status:
{STATUS}
"""


def train_diffusion(
    kind: KindName = None,
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
        str | None, typer.Option(metavar="FILE", help="Conversations to learn from; else made.")
    ] = None,
    steps: Steps = None,
    rate: Rate = None,
    texts: Texts = None,
    seed: Seed = 0,
    settings: Settings = None,
    device: Device = "cpu",
    threads: Threads = None,
    resume: Resume = False,
    list_all: ListAll = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """See `HELP`."""
    with report_errors(debug=debug, as_json=as_json):
        from weft.serving.weights import locate

        with optional_packages("training"):
            from weft.training.diffusion.spec import (
                DiffusionTrainingJob,
                TrainingListener,
                all_kinds,
                kind_of,
            )

        if list_all:
            print_kinds(all_kinds(), as_json=as_json)
            return
        if kind is None or out is None:
            raise typer.BadParameter("is missing", param_hint="KIND" if kind is None else "--out")
        job = DiffusionTrainingJob(
            kind=kind,
            out=out,
            variant=variant,
            model=None if model is None else model_folder(model),
            data=data,
            schedule=given_values(steps=steps, rate=rate, texts=texts, seed=seed),
            settings=whole_numbers(settings or []),
            threads=threads,
            device=device,
            find=locate,
        )
        code = run_training(
            lambda progress, stop: kind_of(job.kind).train(
                job, resume, TrainingListener(progress, stop)
            ),
            out,
            _print,
            as_json=as_json,
        )
    raise typer.Exit(code)


def _print(trained: DiffusionTrainingResult) -> None:
    typer.echo(f"{trained.kind} is in {clean(str(trained.folder))}: {trained.steps} steps")
    if trained.loss is not None:
        typer.echo(f"loss of the last step: {trained.loss:.3f}")
    for line in trained.measured:
        typer.echo(f"  {line}")
