"""Taking one file out of a zip archive that may have been made by an enemy.

Knows nothing of wheels. Only ever writes the one file its caller names.
"""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from weft.serving.weights.source import SourceFailed

MAX_RATIO = 20.0
_CHUNK_BYTES = 1 << 20
_ENCRYPTED = 0x1


def extract(
    archive: Path,
    member: str,
    target: Path,
    *,
    max_bytes: int,
    on_bytes: Callable[[int], None] = lambda _: None,
) -> None:
    """Write the content of `member` to `target`, a path that must not exist yet.

    `on_bytes` is told how many bytes have been written so far.

    Raises: `SourceFailed` when the archive is broken, the member is missing, doubled, encrypted, a
    link or a folder, its name leaves the archive, it holds more than `max_bytes`, or it unpacks to
    more than `MAX_RATIO` times its packed size.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            info = _only(opened, member)
            _refuse(info, max_bytes)
            with opened.open(info) as packed, target.open("xb") as out:
                written = 0
                while chunk := packed.read(_CHUNK_BYTES):
                    written += len(chunk)
                    if written > max_bytes:
                        raise SourceFailed(f"{member} unpacks to more than {max_bytes} bytes")
                    out.write(chunk)
                    on_bytes(written)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise SourceFailed(f"{archive.name} is not a sound archive: {error}") from error


def _only(opened: zipfile.ZipFile, member: str) -> zipfile.ZipInfo:
    found = [info for info in opened.infolist() if info.filename == member]
    if len(found) != 1:
        raise SourceFailed(f"the archive holds {member} {len(found)} times, not once")
    return found[0]


def _refuse(info: zipfile.ZipInfo, max_bytes: int) -> None:
    path = PurePosixPath(info.filename)
    mode = info.external_attr >> 16
    kind = stat.S_IFMT(mode)
    if path.is_absolute() or ".." in path.parts or "\\" in info.filename:
        raise SourceFailed(f"the name {info.filename!r} leaves the archive")
    if info.is_dir() or kind not in (0, stat.S_IFREG):
        raise SourceFailed(f"{info.filename} is not a regular file")
    if info.flag_bits & _ENCRYPTED:
        raise SourceFailed(f"{info.filename} is encrypted")
    if info.file_size > max_bytes:
        raise SourceFailed(f"{info.filename} claims {info.file_size} bytes, at most {max_bytes}")
    if info.file_size > MAX_RATIO * max(info.compress_size, 1):
        raise SourceFailed(f"{info.filename} unpacks to over {MAX_RATIO:g} times its packed size")
