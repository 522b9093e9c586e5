"""The entry point of the program `weft`."""

from __future__ import annotations

import signal


def run() -> None:
    """Load the command line and run it. Ctrl-C while it loads ends the program silently."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from typer.main import get_command

    from weft.cli.main import app

    command = get_command(app)
    if is_default:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command()
