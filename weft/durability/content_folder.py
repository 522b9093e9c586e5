"""A content store in a folder: one file for each content, for one machine or a shared disk."""

from __future__ import annotations

import asyncio
import errno
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from weft.core.errors import ContentNotFound, StoreError
from weft.core.ports.content import (
    MAX_CONTENT_BYTES,
    ContentDigest,
    check_content_size,
    content_digest,
    digest_of_content,
    verified_content,
)
from weft.durability.synced_folder import sync_folder

_PARTIAL: Final = ".partial"
_ABANDONED_S: Final = 24 * 3600.0


class FolderContentStore:
    """Implements `ContentStore` in the folder `path`, which is created when it is missing.

    Content is the file `sha256/XX/REST` (mode 0600, folders 0700), XX being the first two digits
    of its digest. A file appears under its name complete and synced to the disk. Files that writers
    left unfinished are removed after a day.
    """

    def __init__(self, path: Path | str, *, max_bytes: int = MAX_CONTENT_BYTES) -> None:
        self._path = Path(path)
        self._max_bytes = max_bytes
        self._where = f"the content store {self._path}"
        self._is_prepared = False

    async def put(self, content: bytes) -> ContentDigest:
        check_content_size(len(content), self._max_bytes, self._where)
        return await asyncio.to_thread(self._put, bytes(content))

    async def get(self, digest: str) -> bytes:
        return await asyncio.to_thread(self._get, content_digest(digest))

    async def has(self, digest: str) -> bool:
        return await asyncio.to_thread(self._has, content_digest(digest))

    async def aclose(self) -> None:
        """No file stays open between calls."""

    def _put(self, content: bytes) -> ContentDigest:
        digest = digest_of_content(content)
        file = self._file(digest)
        try:
            if not _has_bytes(file, content):
                self._prepare()
                self._write(file, content)
            for folder in (file.parent, file.parent.parent, self._path):  # each may be new,
                sync_folder(folder)  # and another process may not have come to this yet
        except OSError as error:
            raise self._failure(error) from error
        return digest

    def _get(self, digest: ContentDigest) -> bytes:
        try:
            with self._file(digest).open("rb") as file:
                check_content_size(os.fstat(file.fileno()).st_size, self._max_bytes, self._where)
                content = file.read(self._max_bytes + 1)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ContentNotFound(f"{self._where} has no content {digest}") from error
        except OSError as error:
            raise self._failure(error) from error
        return verified_content(digest, content, self._where)

    def _has(self, digest: ContentDigest) -> bool:
        try:
            return self._file(digest).is_file()
        except OSError as error:
            raise self._failure(error) from error

    def _file(self, digest: ContentDigest) -> Path:
        kind, _, digits = digest.partition(":")
        return self._path / kind / digits[:2] / digits[2:]

    def _prepare(self) -> None:
        if self._is_prepared:
            return
        partial = self._path / _PARTIAL
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial.mkdir(mode=0o700, exist_ok=True)
        oldest = time.time() - _ABANDONED_S
        for file in partial.iterdir():
            with suppress(FileNotFoundError):  # another process removes it, too
                if file.stat().st_mtime < oldest:
                    file.unlink()
        self._is_prepared = True

    def _write(self, place: Path, content: bytes) -> None:
        for folder in (place.parent.parent, place.parent):
            folder.mkdir(mode=0o700, exist_ok=True)
        number, name = tempfile.mkstemp(dir=self._path / _PARTIAL)
        partial = Path(name)
        try:
            with os.fdopen(number, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(place)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise

    def _failure(self, error: OSError) -> StoreError:
        reason = error.strerror or type(error).__name__
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return StoreError(f"{self._where} is full: {reason}", hint="free some space")
        return StoreError(f"{self._where}: {reason}", hint="may this user read and write there?")


def _has_bytes(file: Path, content: bytes) -> bool:
    try:
        with file.open("rb") as stored:
            same_size = os.fstat(stored.fileno()).st_size == len(content)
            return same_size and stored.read() == content
    except (FileNotFoundError, NotADirectoryError):
        return False
