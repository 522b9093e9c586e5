"""Commands typed into a folder of a test's own, with a journal of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from weft.cli.main import app


def typed(*words: str) -> Result:
    """What `weft WORDS` says, and how it ends."""
    return CliRunner().invoke(app, list(words))


def go_into(folder: Path, monkeypatch: pytest.MonkeyPatch, journal: str = "journal.sqlite") -> None:
    """Stand in `folder`, before a plain terminal of 140 columns; runs are recorded there."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("WEFT_JOURNAL", str(folder / journal))
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
