"""`-v` of every command: what weft logs, on stderr."""

from __future__ import annotations

import logging
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from weft.cli.text import clean

_LEVELS = {1: logging.INFO, 2: logging.DEBUG}


class _StderrHandler(logging.Handler):
    """Prints records to the stderr of the moment, without terminal sequences and secrets."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(clean(self.format(record)) + "\n")


_HANDLER = _StderrHandler()
_HANDLER.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))


def show_logs(verbosity: int) -> None:
    """Print what weft logs to stderr: 1 is INFO, 2 and more DEBUG, 0 changes nothing."""
    if verbosity:
        weft = logging.getLogger("weft")
        weft.setLevel(_LEVELS[min(verbosity, 2)])
        weft.addHandler(_HANDLER)  # harmless when repeated


Verbose = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        show_default=False,
        help="Log to stderr what happens; -vv says more.",
        callback=show_logs,
    ),
]


def add_verbose(command: Any) -> Any:
    """Give `command`, and the commands below it, the option `-v`. Returns it."""
    if isinstance(command, TyperGroup):
        for below in command.commands.values():
            add_verbose(below)
        return command
    app = typer.Typer(add_completion=False)
    app.command()(_only_verbose)
    option = get_command(app).params[0]  # typer itself makes the option
    option.expose_value = False
    command.params.append(option)
    return command


def _only_verbose(verbosity: Verbose = 0) -> None:
    del verbosity  # its callback has done the work
