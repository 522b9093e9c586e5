"""The workflows in the files and folders that a command names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.text import amount, clean, one_line

if TYPE_CHECKING:
    from weft.core.errors import WeftError
    from weft.workflow.flow import Flow

FilesOrFolders = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...", help="Workflows, or folders of them (*.yaml, *.yml).", exists=True
    ),
]


def load_all(places: list[Path]) -> list[Flow]:
    """The workflows in files and folders; a folder's other files are warned of, and left out.

    Raises: `typer.BadParameter` for a folder without files, `BuildError` when none can be used.
    """
    from weft.core.errors import BuildError, WeftError
    from weft.workflow import load

    flows: list[Flow] = []
    unusable = 0
    for place in places:
        if not place.is_dir():
            flows.append(load(place))
            continue
        for file in _inside(place):
            try:
                flow = load(file)
                flow.check()
            except WeftError as error:
                unusable += 1
                _warn(file, error)
            else:
                flows.append(flow)
    if not flows:
        text = f"none of {amount(unusable, 'file')} is a workflow that can run here"
        raise BuildError(text, hint="`weft check FILE` says what is wrong")
    return flows


def _inside(folder: Path) -> list[Path]:
    inside = sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")])
    if not inside:
        raise typer.BadParameter(f"{folder} contains no *.yaml", param_hint="FILE")
    return inside


def _warn(file: Path, error: WeftError) -> None:
    from weft.cli.console import stderr

    line = getattr(error, "line", None)
    where = clean(str(file)) + (f":{line}" if line else "")
    text = f"warning: left out {where}: {one_line(error.message, 300)}"
    stderr().print(text, style="yellow", soft_wrap=True)
