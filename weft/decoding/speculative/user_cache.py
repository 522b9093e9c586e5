"""Small JSON files in the user's cache folder: what was measured here before. Fails soft.

What cannot be read is measured again; what cannot be written is not kept.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

_LARGEST_BYTES: Final = 4 << 20


def folder() -> Path:
    """Under `WEFT_HOME`, else the user's cache folder."""
    root = os.environ.get("WEFT_HOME") or user_cache_path("weft")
    return Path(root).expanduser() / "speculative"


def read(path: Path) -> object:
    """The JSON value of a file; None where there is none, or none that can be read."""
    try:
        with path.open("rb") as opened:
            raw = opened.read(_LARGEST_BYTES + 1)
        return None if len(raw) > _LARGEST_BYTES else json.loads(raw)
    except (OSError, ValueError, RecursionError):
        return None


def write(path: Path, value: object) -> bool:
    """Replace a file at once; whether that was possible."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(json.dumps(value, allow_nan=False) + "\n", "utf-8")
        beside.replace(path)
    except OSError:
        return False
    return True
