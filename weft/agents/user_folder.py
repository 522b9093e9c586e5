"""The folder of the user's own files: the default journal, and memories that have no path."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_data_path


def user_folder() -> Path:
    """`WEFT_HOME`, else the user's data folder."""
    return Path(os.environ.get("WEFT_HOME") or user_data_path("weft"))


def memory_path(name: str) -> Path:
    """The file of the memory `name`, where no path is given: beside the user's journal."""
    return user_folder() / "memory" / f"{name}.sqlite"
