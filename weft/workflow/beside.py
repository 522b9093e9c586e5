"""Files that a workflow names: they lie in its folder or below. Reads none of them."""

from __future__ import annotations

from pathlib import Path

from weft.core.errors import BuildError
from weft.workflow.unit import Unit


def file_beside(unit: Unit, text: str, hint: str = "keep the file beside the workflow") -> Path:
    """The file that `text` means in `unit`, symbolic links followed.

    Raises: `BuildError`, with `hint`, when it leads out of the root folder.
    """
    try:
        file = (unit.folder / text).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise BuildError(f"{text!r} is not the path of a file: {error}") from error
    if Path(text).is_absolute() or not file.is_relative_to(unit.root):
        raise BuildError(f"{text} leads out of the workflow's folder", hint=hint)
    return file
