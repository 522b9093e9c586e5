"""`weft init`: writes a workflow to start from."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from weft.cli.errors import report_errors
from weft.cli.options import Debug
from weft.core.errors import InputError

Example = Literal["first", "reviews"]
_FILES: Final[dict[Example, tuple[str, ...]]] = {
    "first": ("workflow.yaml", "tools.py"),
    "reviews": ("workflow.yaml", "reviews.jsonl", "reviews.txt"),
}
_TRY: Final[dict[Example, str]] = {"first": "weft run", "reviews": "weft eval"}


def init(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Where to write; here by default.", file_okay=False),
    ] = Path(),
    example: Annotated[
        Example,
        typer.Option(
            help="first: tools and a map, without a model. "
            "reviews: a classifier with data, to evaluate and to optimise."
        ),
    ] = "first",
    debug: Debug = False,
) -> None:
    """Write a small workflow, ready to run. Existing files are left as they are."""
    with report_errors(debug=debug):
        present = [name for name in _FILES[example] if (folder / name).exists()]
        if present:
            raise InputError(
                f"{folder / present[0]} exists already", hint="name another folder: weft init DIR"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name in _FILES[example]:
                with (folder / name).open("x", encoding="utf-8") as file:
                    file.write(_text(example, name))
        except OSError as error:
            raise InputError(f"cannot write to {folder}: {error.strerror}") from None
        for name in _FILES[example]:
            typer.echo(f"wrote {folder / name}")
        typer.echo(f"try: {_TRY[example]} {folder / 'workflow.yaml'}")


def _text(example: Example, name: str) -> str:
    """The text of a file. Python is kept as .txt: it is not weft's own code."""
    kept = f"{name}.txt" if name.endswith(".py") else name
    return (files("weft.cli.starter") / example / kept).read_text(encoding="utf-8")
