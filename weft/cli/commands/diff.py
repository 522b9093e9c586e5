"""`weft diff`: compares two recorded runs, or two workflow files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.errors import report_errors
from weft.cli.exit_code import ExitCode
from weft.cli.journal import histories_at
from weft.cli.options import AsJson, Debug, JournalPlace
from weft.cli.text import json_text
from weft.core.errors import InputError

RunOrFile = Annotated[
    str,
    typer.Argument(metavar="RUN", help="A run's id, the beginning of one, or last; or a file."),
]
HELP = """Compare two runs: outcomes, outputs, tokens and times, node by node, and critical paths.
Or two workflow files, such as one before and after an optimisation: what differs but for layout.

\b
Exit status:
  0    every node and output came to the same; the workflows are equal
  1    something differs, or a run or a file cannot be read
  2    wrong usage, or there is no such run
"""


def diff(
    left: RunOrFile,
    right: RunOrFile,
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

        if is_workflow_file(left) or is_workflow_file(right):
            for text in (left, right):
                if not Path(text).is_file():
                    hint = "compare two workflow files, or two runs"
                    raise InputError(f"there is no file {text}", hint=hint)
            raise typer.Exit(_of_files(left, right, as_json=as_json))
        comparison = compare(*histories_at(journal, left, right))
        if as_json:
            typer.echo(json_text(difference_data(comparison)))
        else:
            print_difference(stdout(), comparison, everything=everything)
    raise typer.Exit(ExitCode.SUCCEEDED if comparison.same else ExitCode.FAILED)


def is_workflow_file(text: str) -> bool:
    """Whether `text` names a file, and not a run."""
    return Path(text).suffix in (".yaml", ".yml") and Path(text).is_file()


def _of_files(left: str, right: str, *, as_json: bool) -> ExitCode:
    """Print what differs between two workflow files. Raises: `SourceError`."""
    from weft.cli.console import stdout
    from weft.cli.reports.difference import print_lines
    from weft.workflow import load
    from weft.workflow.document.rewrite import text_diff
    from weft.workflow.document.writer import to_yaml

    before, after = (to_yaml(load(file).document) for file in (left, right))
    lines = text_diff(before, after, left, right)
    if as_json:
        typer.echo(json_text({"same": not lines, "lines": lines}))
    else:
        print_lines(stdout(), lines)
    return ExitCode.FAILED if lines else ExitCode.SUCCEEDED
