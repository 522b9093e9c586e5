"""Workflows from files and texts, as `Flow`s."""

from __future__ import annotations

from pathlib import Path

from weft.cluster.settings import Placement
from weft.workflow.document.loader import load_text, load_unit
from weft.workflow.flow.flow import Flow


def load(path: str | Path) -> Flow:
    """The workflow in a file. Imports no tools: see `Flow.check`.

    Raises: `SourceError`, with file, line, column and a hint, for every defect.
    """
    return Flow.of(load_unit(Path(path)))


def check(path: str | Path, on: Placement | None = None) -> Flow:
    """Load and check a workflow file in one pass: keys, names, types, tools and models.

    Imports the Python files and modules that it names. `on`: as of `Flow.run`; it names the pools.

    Raises: `SourceError` for the first defect; its `defects` are all of them, in order.
    """
    from weft.workflow.runtime.compiled import check_file as checked

    return Flow.of(checked(Path(path), on))


def loads(text: str, file: str = "<text>") -> Flow:
    """The workflow in a text; relative paths are relative to the folder of `file`.

    Raises: `SourceError`, with file, line, column and a hint, for every defect.
    """
    return Flow.of(load_text(text, file))
