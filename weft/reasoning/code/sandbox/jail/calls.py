"""Which system calls a program may not make, and the seccomp filter that says so.

Two verdicts: what no program of ours needs ends it at once (SIGSYS); what an innocent library may
try is refused with an error number. Everything else is left to namespaces, limits and mounts.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from collections.abc import Iterator, Mapping
from typing import Final

from weft.reasoning.code.sandbox.jail.kernel import PR_SET_SECCOMP, prctl
from weft.reasoning.code.sandbox.jail.numbers import attribute_numbers, call_numbers

_REFUSED: Final[Mapping[str, int]] = {
    "socket": errno.EACCES,
    "clone3": errno.ENOSYS,  # its flags cannot be seen from here; the C library then uses clone
    "memfd_create": errno.ENOSYS,  # these hold memory that no limit of the process counts
    "memfd_secret": errno.ENOSYS,
    "shmget": errno.ENOSYS,
    "msgget": errno.ENOSYS,
    "semget": errno.ENOSYS,
    "mq_open": errno.ENOSYS,
    "io_uring_setup": errno.ENOSYS,
    "io_uring_enter": errno.ENOSYS,
    "io_uring_register": errno.ENOSYS,
}
_NEW_NAMESPACES: Final = 0x7E020000
_X32_CALLS: Final = 0x40000000

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K
_KILL: Final = 0x80000000
_ERROR: Final = 0x00050000
_ALLOW: Final = 0x7FFF0000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data


_AUDIT: Final[Mapping[str, int]] = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def why_no_filter() -> str:
    """Why system calls cannot be filtered here; empty: they can be."""
    if platform.machine() not in _AUDIT:
        return f"the system calls of {platform.machine()} are not known"
    try:
        prctl(PR_SET_SECCOMP, 2, ctypes.c_void_p(0))
    except OSError as error:
        # With no filter at all, a kernel that could install one complains of the address.
        return "" if error.errno == errno.EFAULT else f"seccomp: {error.strerror}"
    return ""


def restrict_calls(*, attributes: bool) -> None:
    """Hold this process, and all that it starts or executes, to the filter; for good.

    `attributes`: those of files may be changed.

    `PR_SET_NO_NEW_PRIVS` must be set. Raises: `OSError`.
    """
    code = b"".join(_instructions(platform.machine(), attributes=attributes))
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    prctl(PR_SET_SECCOMP, 2, ctypes.byref(program))


def _instructions(machine: str, *, attributes: bool) -> Iterator[bytes]:
    numbers = call_numbers(machine)
    yield _step(_LOAD, _ARCHITECTURE)
    yield from _when(_EQUAL, _AUDIT[machine], otherwise=_KILL)
    yield _step(_LOAD, _NUMBER)
    yield from _unless(_AT_LEAST, _X32_CALLS, _KILL)
    for name, number in numbers.items():
        if name != "clone":
            verdict = _ERROR | _REFUSED[name] if name in _REFUSED else _KILL
            yield from _unless(_EQUAL, number, verdict)
    for number in () if attributes else attribute_numbers(machine).values():
        yield from _unless(_EQUAL, number, _ERROR | errno.EPERM)
    yield from _when(_EQUAL, numbers["clone"], otherwise=_ALLOW)
    yield _step(_LOAD, _FIRST_ARGUMENT)
    yield from _unless(_ANY_BIT, _NEW_NAMESPACES, _KILL)
    yield _step(_RETURN, _ALLOW)


def _when(test: int, value: int, *, otherwise: int) -> Iterator[bytes]:
    """Go on if the test holds, else end with a verdict."""
    yield _step(test, value, hit=1)
    yield _step(_RETURN, otherwise)


def _unless(test: int, value: int, verdict: int) -> Iterator[bytes]:
    """End with `verdict` if the test holds, else go on."""
    yield _step(test, value, miss=1)
    yield _step(_RETURN, verdict)


def _step(code: int, value: int, hit: int = 0, miss: int = 0) -> bytes:
    return struct.pack("HBBI", code, hit, miss, value)
