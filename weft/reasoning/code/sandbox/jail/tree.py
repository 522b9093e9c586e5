"""The files that a program sees: what it needs to run, read only, and one bounded directory.

A mount namespace with a root of its own. Knows paths; which ones are needed is decided outside.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from weft.reasoning.code.sandbox.jail.kernel import (
    CLONE_NEWNS,
    MOUNT_NODEV,
    MOUNT_NOSUID,
    MOUNT_RDONLY,
    MS_BIND,
    MS_NODEV,
    MS_NOSUID,
    MS_PRIVATE,
    MS_REC,
    detach,
    mount,
    pivot_root,
    restrict_mount,
    unshare,
)

BOX: Final = "/box"
"""Where the program's own directory is."""
_STAGE: Final = "/tmp"  # noqa: S108 - any directory will do: only this mount namespace sees it
_OUTSIDE: Final = "/outside"
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
"""The devices that a program may use."""
_UNTRUSTED: Final = MS_NOSUID | MS_NODEV


def resolve(paths: Iterable[str]) -> Mapping[str, str]:
    """Where each of `paths` really is; those that are missing are left out."""
    return {path: os.path.realpath(path) for path in paths if Path(path).exists()}


def own_mounts() -> None:
    """Give this process a mount namespace of its own, with an empty file system to build in.

    Raises: `OSError` where the system does not let us; then nothing has changed.
    """
    unshare(CLONE_NEWNS)
    mount("none", "/", "", MS_REC | MS_PRIVATE)
    mount("weft", _STAGE, "tmpfs", _UNTRUSTED, "size=1m,nr_inodes=1k,mode=755")


def build_tree(reads: Mapping[str, str], box_bytes: int, box_files: int, owner: int) -> None:
    """Give this process a root in which only `reads` (read only) and `BOX` exist.

    `reads` were resolved before `own_mounts`, which covers a directory of the system. `BOX` holds
    at most `box_bytes` in `box_files` files, directories and links, and belongs to `owner`.

    Raises: `OSError` where the system does not let us.
    """
    Path(_STAGE + _OUTSIDE).mkdir()
    pivot_root(_STAGE, _STAGE + _OUTSIDE)
    os.chdir("/")
    for device in DEVICES:
        _show(device)
        restrict_mount(device, MOUNT_RDONLY | MOUNT_NOSUID, recursive=False)
    shown = _outermost(reads.values())
    for path in shown:
        _show(path)
        restrict_mount(path, MOUNT_RDONLY | MOUNT_NOSUID | MOUNT_NODEV, recursive=True)
    for link in _outermost(path for path, end in reads.items() if path != end):
        if not _within(link, shown):
            Path(link).parent.mkdir(parents=True, exist_ok=True)
            Path(link).symlink_to(reads[link])
    Path(BOX).mkdir()
    limits = f"size={box_bytes},nr_inodes={box_files + 1},mode=700,uid={owner},gid={owner}"
    mount("weft", BOX, "tmpfs", _UNTRUSTED, limits)
    detach(_OUTSIDE)
    Path(_OUTSIDE).rmdir()
    restrict_mount("/", MOUNT_RDONLY | MOUNT_NOSUID, recursive=False)


def _outermost(paths: Iterable[str]) -> list[str]:
    """Those of `paths` that lie in no other one of them."""
    chosen: list[str] = []
    for path in sorted(paths):
        if not _within(path, chosen):
            chosen.append(path)
    return chosen


def _within(path: str, others: Iterable[str]) -> bool:
    return any(path == other or path.startswith(other.rstrip("/") + "/") for other in others)


def _show(path: str) -> None:
    """Make what is at `path` outside appear here too."""
    source, target = Path(_OUTSIDE + path), Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    mount(str(source), path, "", MS_BIND | MS_REC)
