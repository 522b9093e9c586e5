"""Files that a command writes, and what a person is told where it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weft.core.errors import InputError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What fails inside is the writing of `path`. Raises: `InputError`."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def check_writable(path: Path) -> None:
    """Raise `InputError` when `path` cannot be written."""
    with writing(path):
        path.open("a", encoding="utf-8").close()
