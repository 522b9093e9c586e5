"""Linux system calls that Python has no function for, by ctypes; an error number is an `OSError`.

Contains numbers and structures only.
"""

from __future__ import annotations

import ctypes
import os
import platform
from typing import Final

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000
CLONE_NEWCGROUP: Final = 0x02000000

MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_BIND: Final = 4096
MS_REC: Final = 16384
MS_PRIVATE: Final = 1 << 18
MNT_DETACH: Final = 2
MOUNT_RDONLY: Final = 1
MOUNT_NOSUID: Final = 2
MOUNT_NODEV: Final = 4

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_SET_SECCOMP: Final = 22
PR_CAPBSET_DROP: Final = 24
PR_SET_NO_NEW_PRIVS: Final = 38
PR_CAP_AMBIENT: Final = 47
PR_CAP_AMBIENT_CLEAR_ALL: Final = 4

_AT_FDCWD: Final = -100
_AT_RECURSIVE: Final = 0x8000
_MOUNT_SETATTR: Final = 442  # the same on every architecture
_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41}
_CAPABILITY_VERSION_3: Final = 0x20080522
_LAST_CAPABILITY: Final = 63

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilityData(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def unshare(flags: int) -> None:
    """Move this process, or its future children, into new namespaces."""
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """Mount `source` at `target`."""
    arguments = (source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags))
    _checked(_libc.mount(*arguments, data.encode()), f"mount {target}")


def restrict_mount(target: str, attributes: int, *, recursive: bool) -> None:
    """Add `attributes` to the mount at `target`, and to those below it."""
    changes = _MountAttributes(attr_set=attributes)
    _checked(
        _libc.syscall(
            ctypes.c_long(_MOUNT_SETATTR),
            ctypes.c_int(_AT_FDCWD),
            target.encode(),
            ctypes.c_uint(_AT_RECURSIVE if recursive else 0),
            ctypes.byref(changes),
            ctypes.c_size_t(ctypes.sizeof(changes)),
        ),
        f"mount_setattr {target}",
    )


def detach(target: str) -> None:
    """Unmount `target` and all below it, now or when its last user is gone."""
    _checked(_libc.umount2(target.encode(), ctypes.c_int(MNT_DETACH)), f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root of this mount namespace, and put the former root at `old`."""
    number = _PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(38, f"pivot_root is not known on {platform.machine()}")
    _checked(_libc.syscall(ctypes.c_long(number), new.encode(), old.encode()), "pivot_root")


def prctl(option: int, value: int = 0, pointer: object = None) -> None:
    """`prctl(2)` with a number, or with a number and a pointer."""
    third = ctypes.c_ulong(0) if pointer is None else pointer
    zero = ctypes.c_ulong(0)
    result = _libc.prctl(ctypes.c_int(option), ctypes.c_ulong(value), third, zero, zero)
    _checked(result, f"prctl {option}")


def drop_capabilities() -> None:
    """Give up every capability, for this process and for all that it executes."""
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno == 22:  # the kernel knows no more of them
                break
            if error.errno != 1:
                raise
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    nothing = (_CapabilityData * 2)()
    _checked(_libc.capset(ctypes.byref(header), ctypes.byref(nothing)), "capset")


def _checked(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
