"""Where the evaluation data lies, which is read in place. Knows no format but JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from evals.planning.effort import Skipped

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"


def folder(name: str) -> Path:
    """`name` inside the data folder: that of `WEFT_DATA`, else `../shared/data`.

    Raises: `Skipped` when it is not there.
    """
    root = Path(os.environ.get("WEFT_DATA") or _BESIDE)
    found = root / name
    if not found.is_dir():
        raise Skipped(f"there is no data at {found}: set WEFT_DATA to the folder that holds {name}")
    return found


def load(name: str) -> Any:
    """What the JSON file `name` in the data folder holds. Raises: `Skipped`."""
    path = folder(str(Path(name).parent)) / Path(name).name
    if not path.is_file():
        raise Skipped(f"there is no file {path}")
    return json.loads(path.read_text("utf-8"))


def load_lines(name: str) -> list[Any]:
    """The values of a file with one JSON value per line. Raises: `Skipped`."""
    path = folder(str(Path(name).parent)) / Path(name).name
    if not path.is_file():
        raise Skipped(f"there is no file {path}")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
