"""`weft optimise`: looks for a better workflow, and shows studies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from weft.cli import options
from weft.cli.commands.eval import named_metrics, shares_of
from weft.cli.errors import report_errors

HELP = """Look for a better workflow, and test on unseen cases whether it is one.

\b
weft optimise flow.yaml --data cases.jsonl --metric exact    for quality
weft optimise flow.yaml --for cost --keep quality=0.02       cheaper, and not worse by more
weft optimise flow.yaml --dry-run                            what would be tried; calls no model
weft optimise flow.yaml --out better.yaml                    write what was shown to be better
weft optimise show RUN --pick 2 --out other.yaml             a study's report, and one of its front
weft optimise RUN --more 500calls                            search on where the budget ended

What is not given is taken from `evaluation` and `optimise` of the workflow. A study is one recorded
run: Ctrl-C ends it with what it has found, and `weft resume` goes on without asking again.

\b
Exit status:
  0    it came to a verdict, whatever it is
  2    wrong usage, or an invalid workflow or data set
  130  interrupted by Ctrl-C or SIGTERM
"""


def optimise(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE | show RUN | RUN",
            help="The workflow, or a recorded study; RUN alone with --more.",
        ),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="A .jsonl, .csv or .parquet file, ./data.py:function, or hf:NAME:SPLIT.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC", help="METRIC or NAME=METRIC; the first is the quality."),
    ] = None,
    goal: Annotated[
        str | None, typer.Option("--for", metavar="GOAL", help="quality, latency or cost.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=X",
            help="How much worse quality, latency or cost may get, or a limit of p95_s, mean_s or "
            "cost_usd; repeat it.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="AMOUNT", help="For everything, such as '2usd, 500calls, 1h'."),
    ] = None,
    more: Annotated[
        str | None,
        typer.Option(
            metavar="AMOUNT", help="What a recorded study, ended or not, may take besides."
        ),
    ] = None,
    proposers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Who writes prompts, examples or structure, by name."),
    ] = None,
    proposer_model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Whom proposers ask: a model of the workflow."),
    ] = None,
    canaries: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="Cases that no honest answer gets right."),
    ] = None,
    replicates: Annotated[
        int | None, typer.Option(metavar="N", help="Run each case so often.", min=1)
    ] = None,
    shares: Annotated[
        str, typer.Option(metavar="A/B/C", help="The shares of train, dev and held_out.")
    ] = "40/30/30",
    seed: Annotated[int, typer.Option(metavar="N", help="Of the search.")] = 0,
    slots: Annotated[
        int, typer.Option(metavar="N", help="At most so many runs at once.", min=1)
    ] = 16,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be tried; call no model.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="YAML", help="Write the better workflow there.", dir_okay=False),
    ] = None,
    pick: Annotated[
        int | None,
        typer.Option(metavar="N", help="Write that one of the front, whatever was shown.", min=1),
    ] = None,
    as_json: options.AsJson = False,
    page: Annotated[
        Path | None,
        typer.Option("--html", metavar="HTML", help="Write a page with plots.", dir_okay=False),
    ] = None,
    journal: options.JournalPlace = None,
    run_id: options.RunName = None,
    debug: options.Debug = False,
) -> None:
    """See `HELP`."""
    with report_errors(debug=debug, as_json=as_json):
        from weft.cli.studies.session import (
            StudyReports,
            extend_study,
            preview,
            show_study,
            study,
        )

        reports = StudyReports(as_json, page, out, pick, journal)
        kept = None if keep is None else dict(map(_kept, keep))
        named = [] if proposers is None else _names(proposers)
        given: dict[str, Any] = {
            "data": data,
            "metric": named_metrics(metric, "--metric"),
            "budget": budget,
            "replicates": replicates,
        }
        match words:
            case ["show", run] if more is None:
                code = show_study(run, reports)
            case [run] if more is not None:
                others = (*given.values(), goal, keep, proposers, proposer_model, canaries, run_id)
                if dry_run or any(each is not None for each in others):
                    raise typer.BadParameter("a study keeps its options: give --more alone")
                code = extend_study(run, more, reports)
            case [file] if dry_run:
                checked = {"goal": goal, "keep": kept, "proposers": named}
                code = preview(
                    file, given | checked | {"shares": shares_of(shares)}, as_json=as_json
                )
            case [file]:
                code = study(
                    file,
                    reports,
                    **given,
                    goal=goal,
                    keep=kept,
                    proposers=named,
                    proposer_model=proposer_model,
                    canaries=canaries,
                    shares=shares_of(shares),
                    seed=seed,
                    slots=slots,
                    run=run_id,
                )
            case _:
                raise typer.BadParameter("expected FILE, or show RUN, or RUN with --more")
    raise typer.Exit(code)


def _kept(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name.strip().rstrip("<"), float(value)
    except ValueError:
        what = f"expected such as quality=0.02 or p95_s=4, got {text!r}"
        raise typer.BadParameter(what, param_hint="--keep") from None


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
