"""`weft diff`: compares two recorded runs."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.errors import report_errors
from weft.cli.exit_code import ExitCode
from weft.cli.journal import histories_at
from weft.cli.options import AsJson, Debug, JournalPlace, Run
from weft.cli.text import json_text

HELP = """Compare two runs: outcomes, outputs, tokens and times, node by node, and critical paths.

\b
Exit status:
  0    every node and output came to the same
  1    something differs, or a run cannot be read
  2    wrong usage, or there is no such run
"""


def diff(
    left: Run,
    right: Run,
    everything: Annotated[
        bool, typer.Option("--all", help="Show the nodes that came to the same, too.")
    ] = False,
    as_json: AsJson = False,
    journal: JournalPlace = None,
    debug: Debug = False,
) -> None:
    """See `HELP`."""
    with report_errors(debug=debug, as_json=as_json):
        from weft.cli.console import stdout
        from weft.cli.reports.difference import difference_data, print_difference
        from weft.workflow.history.compare import compare

        comparison = compare(*histories_at(journal, left, right))
        if as_json:
            typer.echo(json_text(difference_data(comparison)))
        else:
            print_difference(stdout(), comparison, everything=everything)
    raise typer.Exit(ExitCode.SUCCEEDED if comparison.same else ExitCode.FAILED)
