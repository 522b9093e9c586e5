"""`weft ui`: a web page of the recorded runs, also while they execute."""

from __future__ import annotations

import asyncio
import html
import os
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.errors import report_errors
from weft.cli.options import Debug, JournalPlace

if TYPE_CHECKING:
    from weft.serving.ui import ExperimentReaders
    from weft.workflow.apps.ui import RunsPage


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
    with report_errors(debug=debug):
        from weft.workflow.apps.ui import RunsPage

        page = RunsPage(journal, port, experiments=_experiments())
        asyncio.run(_shown(page, opens=not no_open))


def _experiments() -> ExperimentReaders:
    from weft.cli.evaluation.experiments import JournalExperiments

    return JournalExperiments().readers


async def _shown(page: RunsPage, *, opens: bool) -> None:

    from weft.cli.console import interrupts

    with interrupts(page.stop), redirect_page(page.url) as address:

        def ready() -> None:
            typer.echo(page.url)
            if opens and has_windows():
                asyncio.get_running_loop().run_in_executor(None, open_window, address)

        await page.serve(ready)


_REDIRECT = """<!doctype html><meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={url}">
<title>weft</title><a href="{url}">weft</a>
"""


def has_windows() -> bool:
    """Whether a browser could open a window next to this terminal."""
    if not sys.stdout.isatty():
        return False
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


@contextmanager
def redirect_page(url: str) -> Iterator[str]:
    """The address of a file that redirects to `url`, readable only by its owner.

    Other users of this machine can see the arguments of programs, and so the address.
    """
    with tempfile.TemporaryDirectory(prefix="weft-ui-") as folder:  # 0700
        page = Path(folder) / "weft.html"
        page.write_text(_REDIRECT.format(url=html.escape(url)), encoding="utf-8")
        yield page.as_uri()


def open_window(address: str) -> None:
    """Show `address` in the browser, if there is one."""
    webbrowser.open(address)
