"""`weft version`: which weft this is."""

from __future__ import annotations

import typer


def version() -> None:
    """Print the version."""
    from weft import __version__

    typer.echo(f"weft {__version__}")


def show_version(wanted: bool) -> None:
    """For the option `--version`: print the version and stop."""
    if wanted:
        version()
        raise typer.Exit
