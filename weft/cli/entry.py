"""The program `weft`: loads the command line and hands over."""

from __future__ import annotations

import signal


def run() -> None:
    """The entry point. Ctrl-C while it loads ends it without a word: nothing has begun."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from typer.main import get_command

    from weft.cli.main import app

    command = get_command(app)
    if usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command()
