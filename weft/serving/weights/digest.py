"""SHA-256 of files, and the check against a pinned one."""

from __future__ import annotations

import hashlib
from pathlib import Path

from weft.serving.weights.catalogue import PinnedFile
from weft.serving.weights.source import SourceFailed


def sha256_of(path: Path) -> str:
    """The hexadecimal SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check(path: Path, pinned: PinnedFile) -> None:
    """Raises: `SourceFailed` when `path` is not byte for byte the pinned file."""
    if path.stat().st_size != pinned.size or sha256_of(path) != pinned.sha256:
        raise SourceFailed(f"{pinned.name} is not the file that the catalogue pins")
