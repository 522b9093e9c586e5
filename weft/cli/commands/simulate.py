"""`weft simulate`: a recorded run under other conditions."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.errors import report_errors
from weft.cli.journal import journal_at
from weft.cli.options import AsJson, Debug, JournalPlace, Run
from weft.cli.text import json_text

HELP = """Predict what a recorded run would have taken under other conditions.

Its own scheduler schedules the recorded durations again, in virtual time: joins, retries, limits
and cancellations included. Nothing is called and nothing is spent.

\b
Examples:
  weft simulate last --workers 8
  weft simulate last --latency tool.search=x0.5 --model-speed x2
  weft simulate last --fail search:0.1 --seeds 100
  weft simulate last --advise
"""


def simulate(
    run: Run,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", help="At most so many nodes at once; 0: no limit.", min=0),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(metavar="CLASS=N", help="Slots of a model or a tool; 0: no limit."),
    ] = None,
    latency: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=xF|TIME",
            help="Times as long, or a time: of tool.NAME, model.NAME, node.NAME, own.NAME.",
        ),
    ] = None,
    model_speed: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]xF", help="Models are so many times as fast."),
    ] = None,
    fail: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:P", help="Attempts of a tool, model or node fail so often."),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="So many runs; all but the first draw each time from those of the same code.",
            min=1,
            max=100_000,
        ),
    ] = 1,
    seed: Annotated[int, typer.Option(metavar="N", help="The first seed.")] = 0,
    advise: Annotated[
        bool, typer.Option("--advise", help="Name the three changes that would help most.")
    ] = False,
    as_json: AsJson = False,
    journal: JournalPlace = None,
    debug: Debug = False,
) -> None:
    """See `HELP`."""
    with report_errors(debug=debug, as_json=as_json):
        from weft.cli.console import stdout
        from weft.cli.reports.replay import prediction_data, print_advice, print_prediction
        from weft.durability import simulate as simulation
        from weft.workflow.history.run_history import find_run
        from weft.workflow.history.simulation import parse_change, recording_of

        with journal_at(journal, to_read=True) as opened:
            recorded = recording_of(opened, find_run(opened, run))
        change = parse_change(
            recorded,
            workers=workers,
            limits=limit or (),
            latencies=latency or (),
            speeds=model_speed or (),
            faults=fail or (),
            seed=seed,
        )
        predicted = simulation.simulate(recorded, change, seeds=seeds)
        advice = simulation.advise(recorded, change) if advise else None
        if as_json:
            typer.echo(json_text(prediction_data(predicted, advice)))
            return
        print_prediction(stdout(), predicted)
        if advice is not None:
            print_advice(stdout(), advice)
