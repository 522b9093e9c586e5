"""`weft eval`: evaluates a workflow, and shows and compares evaluations."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options
from weft.cli.errors import report_errors

HELP = """Evaluate a workflow on a data set, and compare evaluations.

\b
weft eval flow.yaml --data cases.jsonl --metric exact     run it on all cases, and score them
weft eval flow.yaml --baseline last --fail-if-worse       for CI: a paired test against a run
weft eval show RUN                                        show a recorded evaluation
weft eval show RUN --rescore f1                           score it anew; no model is called
weft eval diff A B                                        compare two, case by case

What is not given is taken from `evaluation` of the workflow. It is one recorded run: `weft resume`
goes on with it, and no case runs twice. Metrics: exact, numeric:TOLERANCE, f1, schema, code,
judge:MODEL, or ./metrics.py:function.

\b
Exit status:
  0    evaluated, and nothing that was asked for is missed
  1    below --fail-below, worse than the baseline, unscored results under a gate, or not finished
  2    wrong usage, or an invalid workflow or data set
  130  interrupted by Ctrl-C or SIGTERM
"""


def eval(  # noqa: A001 - the command's name
    words: Annotated[
        list[str],
        typer.Argument(metavar="FILE | show RUN | diff A B", help="The workflow, or runs."),
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
        typer.Option(metavar="METRIC", help="METRIC or NAME=METRIC; repeat it. The first is main."),
    ] = None,
    replicates: Annotated[
        int | None, typer.Option(metavar="N", help="Run each case so often.", min=1)
    ] = None,
    split: Annotated[
        str | None, typer.Option(metavar="SPLIT", help="Only train, dev or held_out.")
    ] = None,
    shares: Annotated[
        str, typer.Option(metavar="A/B/C", help="The shares of train, dev and held_out.")
    ] = "40/30/30",
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="Only the first N cases.", min=1)
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            "--filter", metavar="TEMPLATE", help="Only rows like `{{ case.topic == 'tea' }}`."
        ),
    ] = None,
    slots: Annotated[
        int, typer.Option(metavar="N", help="At most so many cases at once.", min=1)
    ] = 64,
    max_errors: Annotated[
        int | None,
        typer.Option(metavar="N", help="Stop when more cases than that have failed.", min=0),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="AMOUNT", help="Spend at most so much, such as 2usd or 50ktok."),
    ] = None,
    deadline: options.Deadline = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="RUN", help="Compare with it; last: the last like this one that passed."
        ),
    ] = None,
    fail_below: Annotated[
        float | None,
        typer.Option(metavar="SCORE", help="Exit with 1 where the main metric is lower."),
    ] = None,
    fail_if_worse: Annotated[
        bool,
        typer.Option(
            "--fail-if-worse",
            help="Exit with 1 where the main metric is worse than the baseline's (p < 0.05).",
        ),
    ] = False,
    margin: Annotated[
        float, typer.Option(metavar="SCORE", help="Allow the main metric to fall so far.", min=0)
    ] = 0.0,
    max_unscored: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Exit with 1 where more results have no score; 0 where another gate is given.",
            min=0,
        ),
    ] = None,
    rescore: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC", help="With show and diff: score by these, without a model."),
    ] = None,
    as_json: options.AsJson = False,
    junit: Annotated[
        Path | None, typer.Option(metavar="XML", help="Write a report for CI.", dir_okay=False)
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--html", metavar="HTML", help="Write a page with plots.", dir_okay=False),
    ] = None,
    events: options.EventsFile = None,
    decode: options.Decode = None,
    on: options.OnCluster = None,
    journal: options.JournalPlace = None,
    durability: options.HowDurable = None,
    run_id: options.RunName = None,
    debug: options.Debug = False,
) -> None:
    """See `HELP`."""
    deadline_s = None if deadline is None else options.seconds(deadline)
    when = options.how_durable(durability)
    with report_errors(debug=debug, as_json=as_json):
        from weft.cli.evaluation.session import EvaluationReports, compare_runs, evaluate, show_run
        from weft.evaluation.gate import EvaluationGate

        gate = EvaluationGate(fail_below, fail_if_worse, margin, max_unscored)
        reports = EvaluationReports(as_json, junit, page, baseline, gate, journal)
        _refuse_run_options(
            words,
            {
                "--metric": metric,
                "--data": data,
                "--replicates": replicates,
                "--split": split,
                "--limit": limit,
                "--filter": keep,
                "--max-errors": max_errors,
                "--budget": budget,
            },
        )
        match words:
            case ["show", run]:
                code = show_run(run, reports, named_metrics(rescore, "--rescore"))
            case ["diff", a, b]:
                if baseline is not None:
                    what = "A is the baseline of weft eval diff A B"
                    raise typer.BadParameter(what, param_hint="--baseline")
                code = compare_runs(a, b, reports, named_metrics(rescore, "--rescore"))
            case [file]:
                from weft.cli.run.session import CommandOptions
                from weft.workflow import load

                if rescore:
                    what = "goes with a recorded run: weft eval show RUN --rescore METRIC"
                    raise typer.BadParameter(what, param_hint="--rescore")
                flow = load(file)
                command = CommandOptions(
                    debug=debug,
                    events=events,
                    deadline_s=deadline_s,
                    cache=False,
                    decode=decode,
                    journal=journal,
                    durability=when,
                    run=run_id,
                    on=options.placement(on),
                )
                code = evaluate(
                    flow,
                    command,
                    reports,
                    data,
                    named_metrics(metric, "--metric"),
                    replicates=replicates,
                    split=split,
                    shares=shares_of(shares),
                    limit=limit,
                    filter=keep,
                    slots=slots,
                    max_errors=max_errors,
                    budget=None if budget is None else _budget(budget),
                )
            case _:
                raise typer.BadParameter("expected FILE, show RUN, or diff A B")
    raise typer.Exit(code)


def named_metrics(texts: list[str] | None, option: str) -> dict[str, str] | str | None:
    """One metric, or several by name; a second `numeric:0.1` is numeric_2.

    Raises: `typer.BadParameter` for one given twice.
    """
    from weft.evaluation.metrics import name_of

    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return texts[0]
    found: dict[str, str] = {}
    for text in texts:
        name, equals, use = text.partition("=")
        if not equals:
            name, use = name_of(text), text
            numbered = (f"{name_of(text)}_{number}" for number in count(2))
            while name in found and use not in found.values():
                name = next(numbered)
        if name in found:
            raise typer.BadParameter(f"there are two metrics `{name}`", param_hint=option)
        found[name] = use
    return found


def _refuse_run_options(words: list[str], given: dict[str, object]) -> None:
    """Raises: `typer.BadParameter` for an option of a run where a recorded one is read."""
    if words[0] not in ("show", "diff") or len(words) == 1:
        return
    for option, value in given.items():
        if value is not None:
            more = ": score it anew with --rescore METRIC" if option == "--metric" else ""
            what = f"goes with a workflow, not with recorded runs{more}"
            raise typer.BadParameter(what, param_hint=option)


def shares_of(text: str) -> tuple[int, ...]:
    """The numbers in `40/30/30`. Raises: `typer.BadParameter`."""
    parts = text.split("/")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        raise typer.BadParameter(f"expected 40/30/30, got {text!r}", param_hint="--shares")
    return tuple(map(int, parts))


def _budget(text: str) -> dict[str, float | int]:
    amount = text.strip().lower()
    if not amount.endswith("usd"):
        return {"tokens": options.token_count(text)}
    try:
        money = float(amount.removesuffix("usd"))
    except ValueError:
        money = -1.0
    if not 0 <= money < float("inf"):
        raise typer.BadParameter(f"expected 2usd or 50ktok, got {text!r}", param_hint="--budget")
    return {"money": money}
