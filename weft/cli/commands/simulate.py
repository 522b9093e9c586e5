"""`weft simulate`: a recorded run under other conditions."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli import options
from weft.cli.errors import report_errors
from weft.cli.journal import journal_at
from weft.cli.options import AsJson, Debug, JournalPlace
from weft.cli.text import json_text, plain
from weft.core.errors import InputError

HELP = """Predict what a recorded run would have taken under other conditions, or what a map over
many machines would take.

RUN's own scheduler schedules the recorded durations again, in virtual time: joins, retries, limits
and cancellations included. With --nodes, and without RUN, items that all take --seconds go to a
cluster, and what the scheduler, the journal and the messages take was measured. Nothing is called
and nothing is spent.

\b
Examples:
  weft simulate last --workers 8
  weft simulate last --latency tool.search=x0.5 --model-speed x2
  weft simulate last --fail search:0.1 --seeds 100
  weft simulate last --advise
  weft simulate --nodes 1000 --items 1000000 --seconds 2
  weft simulate --nodes 100 --seconds 500ms --result-bytes 2000000 --journal postgresql://db/weft
"""

_OTHER = "--workers, --limit, --latency, --model-speed, --fail, --seeds and --advise"


def simulate(
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="A run's id, the beginning of one, or last."),
    ] = None,
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
    nodes: Annotated[
        int | None,
        typer.Option(metavar="N", help="Instead of RUN: a map over so many machines.", min=1),
    ] = None,
    items: Annotated[
        int | None,
        typer.Option(metavar="N", help="Its items; else 50 for each slot.", min=1),
    ] = None,
    seconds: Annotated[
        str, typer.Option(metavar="TIME", help="What an item takes: 500ms, 30s or 2m.")
    ] = "1s",
    slots: Annotated[
        int, typer.Option(metavar="N", help="Items at once on each machine.", min=1)
    ] = 8,
    result_bytes: Annotated[
        int, typer.Option(metavar="N", help="The size of an item's result.", min=0)
    ] = 0,
    as_json: AsJson = False,
    journal: JournalPlace = None,
    debug: Debug = False,
) -> None:
    """See `HELP`."""
    with report_errors(debug=debug, as_json=as_json):
        changes = (workers, limit, latency, model_speed, fail)
        if nodes is not None:
            if (
                run is not None
                or advise
                or seeds > 1
                or any(given is not None for given in changes)
            ):
                raise InputError(f"--nodes is not for a recorded run: leave RUN, {_OTHER} out")
            cluster = (nodes, items, options.seconds(seconds), slots, result_bytes)
            _cluster(*cluster, seed, journal, as_json=as_json)
            return
        if run is None:
            raise InputError("which run?", hint="name one, or last; --nodes N needs none")
        _recorded(run, journal, changes, (seed, seeds), advise=advise, as_json=as_json)


def _cluster(
    nodes: int,
    items: int | None,
    seconds: float,
    slots: int,
    result_bytes: int,
    seed: int,
    journal: str | None,
    *,
    as_json: bool,
) -> None:
    from weft.cli.console import stdout
    from weft.cli.reports.cluster import print_cluster
    from weft.durability.simulate import measured_costs, simulate_cluster
    from weft.durability.simulate.cluster_costs import JournalKind
    from weft.workflow.runtime.journals import file_of_journal

    kind: JournalKind = "postgres" if file_of_journal(journal) is None else "sqlite"
    predicted = simulate_cluster(
        nodes=nodes,
        items=50 * nodes * slots if items is None else items,
        seconds=seconds,
        slots=slots,
        result_bytes=result_bytes,
        costs=measured_costs(kind),
        seed=seed,
    )
    if as_json:
        typer.echo(json_text(plain(predicted)))
        return
    print_cluster(stdout(), predicted, seconds, kind)


_Changes = tuple[int | None, list[str] | None, list[str] | None, list[str] | None, list[str] | None]


def _recorded(
    run: str,
    journal: str | None,
    changes: _Changes,
    drawn: tuple[int, int],
    *,
    advise: bool,
    as_json: bool,
) -> None:
    from weft.cli.console import stdout
    from weft.cli.reports.replay import prediction_data, print_advice, print_prediction
    from weft.durability import simulate as simulation
    from weft.workflow.history.run_history import find_run
    from weft.workflow.history.simulation import parse_change, recording_of

    workers, limit, latency, model_speed, fail = changes
    seed, seeds = drawn
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
