"""Small JSON files of measurements in the user's cache folder.

Unreadable files are measured again; write errors are ignored.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

_LARGEST_BYTES: Final = 4 << 20


def folder() -> Path:
    """The folder, under `WEFT_HOME` or the user's cache folder."""
    root = os.environ.get("WEFT_HOME") or user_cache_path("weft")
    return Path(root).expanduser() / "speculative"


def read(path: Path) -> object:
    """The JSON value of a file; None where it is missing or unreadable."""
    try:
        with path.open("rb") as opened:
            raw = opened.read(_LARGEST_BYTES + 1)
        return None if len(raw) > _LARGEST_BYTES else json.loads(raw)
    except (OSError, ValueError, RecursionError):
        return None


def write(path: Path, value: object) -> bool:
    """Replace a file at once; whether it succeeded."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(value, allow_nan=False) + "\n", "utf-8")
        partial.replace(path)
    except OSError:
        return False
    return True
