"""Writes the events of a run to a file, one JSON object a line, as they happen."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weft.cli.values import plain
from weft.cli.writing import writing
from weft.core.events import Event, Listener


@contextmanager
def events_file(path: Path) -> Iterator[Listener]:
    """A listener that writes to `path`, which is replaced. Raises: `InputError` if it cannot be."""
    with writing(path):
        file = path.open("w", encoding="utf-8", buffering=1)

    def write(event: Event) -> None:
        fields = {f.name: plain(getattr(event, f.name)) for f in dataclasses.fields(event)}
        file.write(json.dumps({"event": type(event).__name__, **fields}) + "\n")

    with file:
        yield write
