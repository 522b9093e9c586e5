"""`weft version`: prints the version."""

from __future__ import annotations

import typer


def version() -> None:
    """Print the version."""
    from weft import __version__

    typer.echo(f"weft {__version__}")
