"""Golden files: text that a change of the code must leave as it is."""

from __future__ import annotations

import os
from pathlib import Path


def assert_golden(file: Path, text: str) -> None:
    """`text` is that of the file. WEFT_WRITE_GOLDEN=1 writes it: review what differs."""
    if os.environ.get("WEFT_WRITE_GOLDEN"):
        file.write_text(text, "utf-8")
    there = file.read_text("utf-8") if file.exists() else ""
    assert text == there, f"{file.name} differs: WEFT_WRITE_GOLDEN=1 python -m pytest ... writes it"
