"""The file system of a program: what it needs to run, read only, and one bounded directory.

By a mount namespace with a root of its own, or else by Landlock (Linux 5.19 or newer), which
protects the contents of files, but does not hide their paths.
"""

from __future__ import annotations

import ctypes
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

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_TRUNCATION: Final = 3  # the version from which on cutting a file counts as writing
_DEVICES: Final = 5
_SCOPES: Final = 6

_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_SPECIAL: Final = 1 << 6 | 1 << 9 | 1 << 11  # making devices and sockets
_ALL: Final = (1 << 15) - 1
_DEVICE_CONTROL: Final = 1 << 15
_SIGNALS_AND_SOCKETS: Final = 3

_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scopes", ctypes.c_uint64),
    )


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def why_no_rules() -> str:
    """The reason why Landlock cannot be used here; empty: it can."""
    try:
        version = _version()
    except OSError as error:
        return f"Landlock: {error.strerror}"
    return "" if version >= _TRUNCATION else f"Landlock {version} is too old"


def restrict_files(reads: Iterable[str], writes: Iterable[str], box: str) -> None:
    """Limit this process to read and execute `reads`, read and write `writes`, and own `box`.

    `PR_SET_NO_NEW_PRIVS` must be set. Missing paths are left out. Raises: `OSError`.
    """
    version = _version()
    handled = _ALL | (_DEVICE_CONTROL if version >= _DEVICES else 0)
    scopes = _SIGNALS_AND_SOCKETS if version >= _SCOPES else 0
    size = ctypes.sizeof(_Ruleset) if scopes else ctypes.sizeof(ctypes.c_uint64)
    wanted = _Ruleset(handled, 0, scopes)
    ruleset = _call(_CREATE_RULESET, ctypes.byref(wanted), ctypes.c_size_t(size), ctypes.c_uint(0))
    try:
        for path in reads:
            _allow(ruleset, path, _EXECUTE | _READ | _LIST)
        for path in writes:
            _allow(ruleset, path, _READ | _WRITE)
        _allow(ruleset, box, _ALL & ~_SPECIAL)
        _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, access: int) -> None:
    if not Path(path).exists():
        return
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        access = access if Path(path).is_dir() else access & ~_LIST
        rule = _Beneath(access, parent)
        kind = ctypes.c_int(_PATH_BENEATH)
        _call(_ADD_RULE, ctypes.c_int(ruleset), kind, ctypes.byref(rule), ctypes.c_uint(0))
    finally:
        os.close(parent)


def _version() -> int:
    nothing, size = ctypes.c_void_p(0), ctypes.c_size_t(0)
    return _call(_CREATE_RULESET, nothing, size, ctypes.c_uint(_VERSION))


def _call(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


BOX: Final = "/box"
"""The program's own directory."""
_STAGE: Final = "/tmp"  # noqa: S108 - any directory will do: only this mount namespace sees it
_OUTSIDE: Final = "/outside"
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
"""The devices that a program may use."""
_UNTRUSTED: Final = MS_NOSUID | MS_NODEV


def resolve(paths: Iterable[str]) -> Mapping[str, str]:
    """The real path of each of `paths` that exists."""
    return {path: os.path.realpath(path) for path in paths if Path(path).exists()}


def own_mounts() -> None:
    """Give this process its own mount namespace, with an empty file system to build in.

    Raises: `OSError` where the system does not permit it; nothing has changed then.
    """
    unshare(CLONE_NEWNS)
    mount("none", "/", "", MS_REC | MS_PRIVATE)
    mount("weft", _STAGE, "tmpfs", _UNTRUSTED, "size=1m,nr_inodes=1k,mode=755")


def build_tree(reads: Mapping[str, str], box_bytes: int, box_files: int, owner: int) -> None:
    """Give this process a root in which only `reads` (read only) and `BOX` exist.

    `reads` were resolved before `own_mounts`, which covers a directory of the system. `BOX` holds
    at most `box_bytes` in `box_files` files, directories and links, and belongs to `owner`.

    Raises: `OSError` where the system does not permit it.
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
    """Those of `paths` that are not inside another one."""
    chosen: list[str] = []
    for path in sorted(paths):
        if not _within(path, chosen):
            chosen.append(path)
    return chosen


def _within(path: str, others: Iterable[str]) -> bool:
    return any(path == other or path.startswith(other.rstrip("/") + "/") for other in others)


def _show(path: str) -> None:
    """Mount `path` of the old root here."""
    source, target = Path(_OUTSIDE + path), Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    mount(str(source), path, "", MS_BIND | MS_REC)
