"""`weft ui`: a page in the browser that shows the recorded runs, also while they happen."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.commands.options import Debug, JournalPlace
from weft.cli.complaint import complaints

if TYPE_CHECKING:
    from weft.workflow.ui import RunsPage

HELP = """Show the recorded runs in the browser, also while another process executes them.

The page lists runs, draws the graph and the timeline of each, opens every node down to its prompt
and the tokens as they stream, compares two runs, answers questions, says what became of calls that
nobody knows the end of, and cancels. It is for this machine only, and for whoever has the address:
there is a key in it.

Ctrl-C ends it; the runs go on.

\b
Exit status:
  0  ended by Ctrl-C or SIGTERM
  1  cannot serve: a port that is taken, a journal that is not there or cannot be read
  2  wrong usage
"""


def ui(
    journal: JournalPlace = None,
    port: Annotated[
        int,
        typer.Option(metavar="N", help="The port; 0: any that is free.", min=0, max=65535),
    ] = 0,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Print the address; open no browser.")
    ] = False,
    debug: Debug = False,
) -> None:
    """See `HELP`."""
    with complaints(debug=debug):
        from weft.workflow.ui import RunsPage

        page = RunsPage(journal, port)
        asyncio.run(_shown(page, opens=not no_open))


async def _shown(page: RunsPage, *, opens: bool) -> None:
    from weft.cli.browser import door_to, has_windows, open_window
    from weft.cli.interrupts import interrupts

    with interrupts(page.stop), door_to(page.url) as door:

        def ready() -> None:
            typer.echo(page.url)
            if opens and has_windows():
                asyncio.get_running_loop().run_in_executor(None, open_window, door)

        await page.serve(ready)
