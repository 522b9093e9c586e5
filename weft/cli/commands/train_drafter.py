"""`weft train-drafter`: trains a drafter for a model, on texts that the model writes itself."""

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
    from weft.training.drafters.session import DrafterTrainingResult

HELP = f"""Train a drafter for a model: heads, prompt tokens or a layer that guess what it writes.

The model itself writes answers to your prompts; the drafter learns from these, and its folder is
what `--decode` takes. Ctrl-C leaves a checkpoint, and --resume goes on from it.

\b
  weft train-drafter --list
  weft train-drafter medusa --model smollm2-135m-instruct --data prompts.jsonl --out heads/
  weft train-drafter ppd --model PATH --data starter --out prompts/ --steps 400

\b
Exit status:
{STATUS}
"""


def train_drafter(
    kind: KindName = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="MODEL", help="A name, or a folder.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Prompts: a .txt or .jsonl file, a folder of them, or `starter` for weft's own.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the drafter shall lie.")
    ] = None,
    steps: Steps = None,
    rate: Rate = None,
    texts: Texts = None,
    seed: Seed = 0,
    settings: Settings = None,
    corpus: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Keeps the model's texts, for several drafters.", dir_okay=False
        ),
    ] = None,
    max_tokens: Annotated[
        int, typer.Option(metavar="N", help="The longest answer the model writes.", min=1)
    ] = 192,
    temperature: Annotated[
        float, typer.Option(metavar="T", help="How it writes; 0: the likeliest token.", min=0.0)
    ] = 0.0,
    device: Device = "cpu",
    threads: Threads = None,
    resume: Resume = False,
    list_all: ListAll = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """See `HELP`."""
    with report_errors(debug=debug, as_json=as_json):
        if list_all:
            with optional_packages("training"):
                from weft.training.drafters.spec import all_kinds

            print_kinds(all_kinds(), as_json=as_json)
            return
        missing = [
            name
            for name, value in (
                ("KIND", kind),
                ("--model", model),
                ("--data", data),
                ("--out", out),
            )
            if value is None
        ]
        if kind is None or model is None or data is None or out is None:
            raise typer.BadParameter("is missing", param_hint=", ".join(missing))
        with optional_packages("training"):
            from weft.training.distillation import DistillationOptions
            from weft.training.drafters.session import DrafterTrainingJob, train

        job = DrafterTrainingJob(
            kind=kind,
            model=model_folder(model),
            prompts=data,
            out=out,
            corpus=corpus,
            writing=DistillationOptions(max_tokens=max_tokens, temperature=temperature, seed=seed),
            schedule=given_values(steps=steps, rate=rate, texts=texts, seed=seed),
            settings=whole_numbers(settings or []),
            threads=threads,
            device=device,
        )
        code = run_training(
            lambda progress, stop: train(job, resume=resume, on_news=progress, stop=stop),
            out,
            _print,
            as_json=as_json,
        )
    raise typer.Exit(code)


def _print(trained: DrafterTrainingResult) -> None:
    typer.echo(
        f"the {trained.kind} drafter is in {clean(str(trained.folder))}: {trained.steps} steps on "
        f"{trained.texts} texts with {trained.answer_tokens:,} tokens of answers"
    )
    if trained.loss is not None:
        typer.echo(f"loss of the last step: {trained.loss:.3f}")
    accuracy = trained.settings.get("accuracy")
    if isinstance(accuracy, list):
        typer.echo("right on texts it did not learn from, first guess / any of the first few:")
        for distance, row in enumerate(accuracy, 1):
            typer.echo(f"  {distance} further on: {row[0]:.1%} / {sum(row):.1%}")
