"""The system calls that a program may not make, and the seccomp filter for them.

Calls that no program needs end it at once (SIGSYS); calls that a harmless library may try fail with
an error number. Everything else is left to namespaces, limits and mounts.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from collections.abc import Iterator, Mapping
from typing import Final

from weft.reasoning.code.sandbox.jail.kernel import PR_SET_SECCOMP, prctl

_MACHINES: Final = ("x86_64", "aarch64")
_TABLE: Final = """
socket               41  198
clone                56  220
clone3              435  435
ptrace              101  117
process_vm_readv    310  270
process_vm_writev   311  271
kcmp                312  272
pidfd_getfd         438  438
mount               165   40
umount2             166   39
pivot_root          155   41
chroot              161   51
open_tree           428  428
move_mount          429  429
fsopen              430  430
fsconfig            431  431
fsmount             432  432
fspick              433  433
mount_setattr       442  442
unshare             272   97
setns               308  268
bpf                 321  280
perf_event_open     298  241
init_module         175  105
delete_module       176  106
finit_module        313  273
kexec_load          246  104
kexec_file_load     320  294
reboot              169  142
swapon              167  224
swapoff             168  225
acct                163   89
quotactl            179   60
settimeofday        164  170
clock_settime       227  112
adjtimex            159  171
clock_adjtime       305  266
sethostname         170  161
setdomainname       171  162
iopl                172    -
ioperm              173    -
modify_ldt          154    -
add_key             248  217
request_key         249  218
keyctl              250  219
userfaultfd         323  282
open_by_handle_at   304  265
fanotify_init       300  262
vhangup             153   58
syslog              103  116
memfd_create        319  279
memfd_secret        447  447
shmget               29  194
msgget               68  186
semget               64  190
mq_open             240  180
io_uring_setup      425  425
io_uring_enter      426  426
io_uring_register   427  427
"""


_ATTRIBUTES: Final = """
chmod                90    -
fchmod               91   52
fchmodat            268   53
fchmodat2           452  452
chown                92    -
fchown               93   55
lchown               94    -
fchownat            260   54
utime               132    -
utimes              235    -
futimesat           261    -
utimensat           280   88
setxattr            188    5
lsetxattr           189    6
fsetxattr           190    7
removexattr         197   14
lremovexattr        198   15
fremovexattr        199   16
setxattrat          463  463
removexattrat       466  466
file_setattr        469  469
"""


def call_numbers(machine: str) -> Mapping[str, int]:
    """The forbidden calls of `machine`, number by name; empty for an unknown machine."""
    return _column(_TABLE, machine)


def attribute_numbers(machine: str) -> Mapping[str, int]:
    """The calls that change a file's mode, owner, times and the like."""
    return _column(_ATTRIBUTES, machine)


def _column(table: str, machine: str) -> Mapping[str, int]:
    if machine not in _MACHINES:
        return {}
    rows = (line.split() for line in table.strip().splitlines())
    column = 1 + _MACHINES.index(machine)
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


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


class _SeccompProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def why_no_filter() -> str:
    """The reason why system calls cannot be filtered here; empty: they can."""
    if platform.machine() not in _AUDIT:
        return f"the system calls of {platform.machine()} are not known"
    try:
        prctl(PR_SET_SECCOMP, 2, ctypes.c_void_p(0))
    except OSError as error:
        # With no filter at all, a kernel that could install one complains of the address.
        return "" if error.errno == errno.EFAULT else f"seccomp: {error.strerror}"
    return ""


def restrict_calls(*, attributes: bool) -> None:
    """Install the filter for this process and all that it starts or executes, irrevocably.

    `attributes`: file attributes may be changed.

    `PR_SET_NO_NEW_PRIVS` must be set. Raises: `OSError`.
    """
    code = b"".join(_instructions(platform.machine(), attributes=attributes))
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _SeccompProgram(len(code) // 8, ctypes.addressof(buffer))
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
    """Continue if the test holds, else end with a verdict."""
    yield _step(test, value, hit=1)
    yield _step(_RETURN, otherwise)


def _unless(test: int, value: int, verdict: int) -> Iterator[bytes]:
    """End with `verdict` if the test holds, else continue."""
    yield _step(test, value, miss=1)
    yield _step(_RETURN, verdict)


def _step(code: int, value: int, hit: int = 0, miss: int = 0) -> bytes:
    return struct.pack("HBBI", code, hit, miss, value)
