"""Files that commands write, such as events as JSON lines."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weft.cli.text import plain
from weft.core.errors import InputError
from weft.core.events import Event, Listener


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Convert errors of writing `path`. Raises: `InputError`."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def check_writable(path: Path) -> None:
    """Raise `InputError` when `path` cannot be written."""
    with writing(path):
        path.open("a", encoding="utf-8").close()


@contextmanager
def events_file(path: Path) -> Iterator[Listener]:
    """A listener that writes to `path`, replacing it. Raises: `InputError` if it cannot."""
    with writing(path):
        file = path.open("w", encoding="utf-8", buffering=1)

    def write(event: Event) -> None:
        fields = {f.name: plain(getattr(event, f.name)) for f in dataclasses.fields(event)}
        file.write(json.dumps({"event": type(event).__name__, **fields}) + "\n")

    with file:
        yield write
