"""`weft signal`: sends a value to a node of a run, whether it asks already or not."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.errors import report_errors
from weft.cli.journal import journal_at
from weft.cli.options import Debug, JournalPlace, Run, loose_value
from weft.cli.text import clean

HELP = """Send a value to an `ask` node of a run, at any time before it has ended.

Unlike `weft answer`, it need not wait for the question: a value that comes early is kept in the
journal, and the node takes it when it begins. Of several early ones the last counts. The value is
checked against the node's `schema`.
"""


def signal(
    run: Run,
    name: Annotated[
        str, typer.Argument(metavar="NODE", help="An `ask` node at the workflow's top level.")
    ],
    value: Annotated[str, typer.Option(metavar="JSON", help="The value; other text is a text.")],
    journal: JournalPlace = None,
    debug: Debug = False,
) -> None:
    """See `HELP`."""
    with report_errors(debug=debug):
        from weft.workflow.history.run_history import find_run
        from weft.workflow.history.signals import send_signal

        with journal_at(journal) as opened:
            found = find_run(opened, run)
            taken = send_signal(opened, found, name, loose_value(value))
    how = "the process that has the run takes it" if taken else "kept until the run goes on"
    typer.echo(f"sent to {clean(name)} of {clean(found)}: {how}")
