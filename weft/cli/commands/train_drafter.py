"""`weft train-drafter`: trains what drafts for a model, on texts that the model writes itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.commands.options import AsJson, Debug
from weft.cli.complaint import complaints
from weft.cli.exit_codes import MEANINGS, ExitCode
from weft.cli.given import loose_value, pairs
from weft.cli.text import clean
from weft.core.errors import InputError

if TYPE_CHECKING:
    from weft.workflow import diffusion_training, drafters
    from weft.workflow.drafters import Order, Trained

    Trainable = drafters.Kind | diffusion_training.Kind

_STATUS = "\n".join(
    f"  {code:<5d}{MEANINGS[code]}"
    for code in (ExitCode.SUCCEEDED, ExitCode.FAILED, ExitCode.INVALID, ExitCode.INTERRUPTED)
)
HELP = f"""Train a drafter for a model: heads, prompt tokens or a layer that guess what it writes.

The model itself writes answers to your prompts; the drafter learns from these, and its folder is
what `--decode` takes. Ctrl-C leaves a checkpoint, and --resume goes on from it.

\b
  weft train-drafter --list
  weft train-drafter medusa --model smollm2-135m-instruct --data prompts.jsonl --out heads/
  weft train-drafter ppd --model PATH --data starter --out prompts/ --steps 400

\b
Exit status:
{_STATUS}
"""


def train_drafter(
    kind: Annotated[
        str | None, typer.Argument(metavar="KIND", help="What to train: see --list.")
    ] = None,
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
    steps: Annotated[int | None, typer.Option(metavar="N", help="How long to train.")] = None,
    rate: Annotated[float | None, typer.Option(metavar="R", help="The learning rate.")] = None,
    texts: Annotated[int | None, typer.Option(metavar="N", help="Texts in a step.")] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Makes it repeatable.", min=0)] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=N", help="A setting of the kind; repeat it for more."),
    ] = None,
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
        if list_all:
            from weft.workflow.drafters import all_kinds

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
        from weft.workflow.drafters import Order, Writing, model_folder

        schedule = {"steps": steps, "rate": rate, "texts": texts, "seed": seed}
        order = Order(
            kind=kind,
            model=model_folder(model),
            prompts=data,
            out=out,
            corpus=corpus,
            writing=Writing(max_tokens=max_tokens, temperature=temperature, seed=seed),
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
    from weft.workflow.drafters import train

    with stopping() as stop, TrainingProgress(stderr()) as progress:
        trained = train(order, resume=resume, on_news=progress, stop=stop)
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


def whole_numbers(texts: list[str]) -> dict[str, int]:
    """Whole numbers by name. Raises: `InputError`, `typer.BadParameter`."""
    found = {}
    for name, text in pairs(texts, "--set").items():
        value = loose_value(text)
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"--set {name}: expected a whole number, not {text!r}")
        found[name] = value
    return found


def print_kinds(kinds: Sequence[Trainable], *, as_json: bool) -> None:
    """What can be trained, with its settings."""
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
