"""Writes the events of a run to a file, one JSON object a line, as they happen."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weft.cli.values import plain
from weft.core.errors import InputError
from weft.core.events import Event, Listener


@contextmanager
def events_file(path: Path) -> Iterator[Listener]:
    """A listener that writes to `path`, which is replaced. Raises: `InputError` if it cannot be."""
    try:
        file = path.open("w", encoding="utf-8", buffering=1)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None

    def write(event: Event) -> None:
        fields = {f.name: plain(getattr(event, f.name)) for f in dataclasses.fields(event)}
        file.write(json.dumps({"event": type(event).__name__, **fields}) + "\n")

    with file:
        yield write
