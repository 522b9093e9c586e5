"""Namespaces for the child processes: their own process ids, network and shared memory.

As root directly, otherwise inside a user namespace. Missing protections are reported with the
reason. Memory is measured through /proc.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from weft.reasoning.code.sandbox.jail.kernel import (
    CLONE_NEWCGROUP,
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    unshare,
)
from weft.reasoning.code.sandbox.jail.seccomp import why_no_filter

_COUNTED: Final = ("RssAnon:", "RssShmem:", "VmSwap:", "VmPTE:")
"""Excludes pages of files: several processes share them, and the system can drop them."""


def why_unwatched() -> str:
    """The reason why memory cannot be measured here; empty: it can."""
    here = os.getpid()
    if Path(f"/proc/{here}/task/{here}/children").exists():
        return ""
    return "/proc does not tell the children of a process"


def memory_below(process: int) -> int:
    """Bytes in use by all descendants of `process`; one that ends meanwhile may count as 0."""
    return sum(_memory(each) for each in _below(process))


def _below(process: int) -> Iterator[int]:
    todo = [process]
    while todo:
        for child in _children(todo.pop()):
            yield child
            todo.append(child)


def _children(process: int) -> Iterator[int]:
    try:
        for thread in Path(f"/proc/{process}/task").iterdir():
            yield from map(int, (thread / "children").read_text().split())
    except OSError:
        return


def _memory(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(_COUNTED))


_PROCESSES: Final = CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP
_TOP_USER: Final = 1 << 31  # ids just below it are unused: users and services have low ones
_SPREAD: Final = 1 << 24
_FEW_USERS: Final = 1024


@dataclass(slots=True)
class Enclosure:
    """The isolation of the children of this process.

    `missing`: missing protections, with reasons. `user`: the program's user id; None: the current
    one. `reserved`: processes of ours that count among the program's.
    """

    user: int | None = None
    reserved: int = 0
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def owner(self) -> int:
        """The user id of the program."""
        return os.geteuid() if self.user is None else self.user


def enclose() -> Enclosure:
    """Isolate the processes that this one starts from now on."""
    made = _enclosed()
    why = why_no_filter()
    if why:
        made.missing["calls"] = why
    elif "network" in made.missing:
        del made.missing["network"]  # the filter forbids sockets
    why = why_unwatched()
    if why:
        made.missing["memory"] = why
    return made


def _enclosed() -> Enclosure:
    mapped = _mapped_users()
    # An id that no other user has: its processes can be counted, and it owns no file of the system.
    user = _unused_user(mapped) if os.geteuid() == 0 else None
    if user is not None and not _why_not(_PROCESSES):
        return _with_network(Enclosure(user))
    counted = os.geteuid() != 0 or mapped[0][1] != 0
    why = _own_users()
    if why:
        return Enclosure(user, missing={"processes": why, "network": why})
    # The keeper and the first process have the same user in the same namespace.
    made = Enclosure(reserved=2)
    why = _why_not(_PROCESSES)
    if not why and not counted:
        why = "processes of root cannot be counted, and it cannot become another user"
    if why:
        made.missing["processes"] = why
    return _with_network(made)


def _mapped_users() -> list[tuple[int, int, int]]:
    """The mapped user ids: the first inside, its id outside, and the length of the range."""
    lines = Path("/proc/self/uid_map").read_text().splitlines()
    return sorted((int(here), int(out), int(many)) for here, out, many in map(str.split, lines))


def _unused_user(mapped: list[tuple[int, int, int]]) -> int | None:
    """A random id among the high mapped ones; None: there are too few."""
    first, _, many = mapped[-1]
    if many < _FEW_USERS:
        return None
    top = min(first + many, _TOP_USER)
    return top - 1 - int.from_bytes(os.urandom(4), "big") % min(many // 2, _SPREAD)


def _with_network(made: Enclosure) -> Enclosure:
    why = _why_not(CLONE_NEWNET)
    if why:
        made.missing["network"] = why
    return made


def _own_users() -> str:
    """Enter a user namespace with our own id; returns the reason of a failure."""
    user, group = os.geteuid(), os.getegid()
    why = _why_not(CLONE_NEWUSER)
    if why:
        return f"user namespaces: {why}"
    try:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    except OSError as error:
        return f"user namespaces: {error}"
    return ""


def _why_not(flags: int) -> str:
    try:
        unshare(flags)
    except OSError as error:
        return error.strerror or str(error)
    return ""
