"""`weft init`: writes a workflow to start from."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from weft.cli.errors import report_errors
from weft.cli.options import Debug
from weft.core.errors import InputError

_STARTER = {"workflow.yaml": "workflow.yaml", "tools.py": "tools.py.txt"}


def init(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Where to write; here by default.", file_okay=False),
    ] = Path(),
    debug: Debug = False,
) -> None:
    """Write a small workflow and its tools, ready to run. Existing files are left as they are."""
    with report_errors(debug=debug):
        present = [name for name in _STARTER if (folder / name).exists()]
        if present:
            raise InputError(
                f"{folder / present[0]} exists already", hint="name another folder: weft init DIR"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, source in _STARTER.items():
                text = (files("weft.cli.starter") / source).read_text(encoding="utf-8")
                with (folder / name).open("x", encoding="utf-8") as file:
                    file.write(text)
        except OSError as error:
            raise InputError(f"cannot write to {folder}: {error.strerror}") from None
        for name in _STARTER:
            typer.echo(f"wrote {folder / name}")
        typer.echo(f"try: weft run {folder / 'workflow.yaml'}")
