"""`weft run`: runs a workflow and shows what happens."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options
from weft.cli.errors import report_errors, statuses
from weft.core.errors import BuildError

HELP = f"""Run a workflow.

Progress goes to stderr: a live view on a terminal, else a line for each node that ends. The
outcome of every node, times, the critical path and the outputs go to stdout.

The first Ctrl-C (or SIGTERM) ends the run and prints what there is; the second ends the process at
once. The run is recorded: `weft resume` goes on with it, `weft replay` repeats it, and `weft runs`
shows it.

\b
Exit status:
{statuses()}
"""


def run(
    file: options.WorkflowFile,
    given: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="NAME=VALUE", help="An input; repeat it for more."),
    ] = None,
    inputs_file: Annotated[
        Path | None,
        typer.Option(metavar="JSON", help="A JSON object of inputs.", exists=True, dir_okay=False),
    ] = None,
    as_json: options.AsJson = False,
    events: options.EventsFile = None,
    timeline: options.TimelineFile = None,
    concurrency: Annotated[
        int | None, typer.Option(metavar="N", help="At most so many nodes at once.", min=1)
    ] = None,
    max_nodes: Annotated[
        int | None, typer.Option(metavar="N", help="At most so many nodes in all.", min=1)
    ] = None,
    deadline: options.Deadline = None,
    decode: options.Decode = None,
    answer: options.GivenAnswers = None,
    yes: options.ApproveCalls = False,
    on: options.OnCluster = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Ignore results kept from earlier runs.")
    ] = False,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Run it one node at a time first, and print the measured speed-up. All that it "
            "does is done twice.",
        ),
    ] = False,
    confirm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE=repeat",
            help="With --compare: a call that must not be repeated may be made twice. NODE may be "
            "a pattern. Repeat the option for more.",
        ),
    ] = None,
    durability: options.HowDurable = None,
    journal: options.JournalPlace = None,
    run_id: options.RunName = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            help="Serve Prometheus metrics meanwhile; 0: a free port.",
            min=0,
            max=65535,
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the outputs and nothing else.")
    ] = False,
    debug: options.Debug = False,
) -> None:
    """See `HELP`."""
    texts = options.pairs(given or (), "--input")
    answers = options.pairs(answer or (), "--answer")
    deadline_s = None if deadline is None else options.seconds(deadline)
    when, place = options.how_durable(durability), options.placement(on)
    repeat = _repeated(confirm or (), compare=compare)
    with report_errors(debug=debug, as_json=as_json, file=file):
        from weft.cli.run.session import CommandOptions, session
        from weft.workflow import check, load

        try:
            flow = load(file)
            flow.check(on=place)
        except BuildError:
            check(file, place)  # one pass that finds all mistakes
            raise
        command = CommandOptions(
            as_json=as_json,
            quiet=quiet,
            debug=debug,
            events=events,
            timeline=timeline,
            concurrency=concurrency,
            max_nodes=max_nodes,
            deadline_s=deadline_s,
            answers=answers,
            approve=yes,
            cache=not no_cache,
            decode=decode,
            journal=journal,
            durability=when,
            run=run_id,
            metrics_port=metrics_port,
            on=place,
        )
        inputs = {} if inputs_file is None else options.inputs_file(inputs_file)
        inputs |= flow.coerce_inputs(texts)
        if compare:
            from weft.cli.run.comparison import compare_serial

            code = asyncio.run(compare_serial(flow, inputs, command, repeat))
        else:
            code = asyncio.run(session(flow, inputs, command))
    raise typer.Exit(code)


def _repeated(confirm: Sequence[str], *, compare: bool) -> Collection[str]:
    """The nodes whose calls may be made twice. Raises: `typer.BadParameter`."""
    confirmations = options.pairs(confirm, "--confirm")
    if confirmations and not compare:
        raise typer.BadParameter("nothing is done twice, unless there is --compare")
    if any(word != "repeat" for word in confirmations.values()):
        raise typer.BadParameter("expected NODE=repeat", param_hint="--confirm")
    return confirmations
