"""The numbers of the system calls that programs may not make, on the machines that are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
    """The calls that no program may make, as far as `machine` has them: number by name.

    Empty when the machine is not known.
    """
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
