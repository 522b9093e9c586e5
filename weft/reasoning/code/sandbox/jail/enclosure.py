"""Namespaces for the processes to come: their own process ids, network and shared memory.

As root directly, otherwise inside a user namespace. What cannot be had is told, with the reason.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from weft.reasoning.code.sandbox.jail.calls import why_no_filter
from weft.reasoning.code.sandbox.jail.kernel import (
    CLONE_NEWCGROUP,
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    unshare,
)

_PROCESSES: Final = CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP
_FIRST_UNUSED_USER: Final = 0x70000000  # above what systems give to people, services and containers


@dataclass(slots=True)
class Enclosure:
    """What the children of this process are enclosed in.

    `missing`: protections that cannot be had, and why. `user` is who the program becomes; None: it
    stays who we are. `reserved` processes of ours count among the program's.
    """

    user: int | None = None
    reserved: int = 0
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def owner(self) -> int:
        """The user id that the program has in the end."""
        return os.geteuid() if self.user is None else self.user


def enclose() -> Enclosure:
    """Enclose the processes that this one starts from now on."""
    made = _enclosed()
    why = why_no_filter()
    if why:
        made.missing["calls"] = why
    elif "network" in made.missing:
        del made.missing["network"]  # the filter lets nobody make a socket
    return made


def _enclosed() -> Enclosure:
    outer = os.geteuid()
    # A user that nobody else is: its processes can be counted, and it owns no file of the system.
    nobody = None if outer else _FIRST_UNUSED_USER + int.from_bytes(os.urandom(3), "big")
    if nobody and not _why_not(_PROCESSES):
        return _with_network(Enclosure(nobody))
    why = _own_users()
    if why:
        return Enclosure(nobody, missing={"processes": why, "network": why})
    # Two of ours are of the same user in the same namespace: the keeper and the first process.
    made = Enclosure(reserved=2)
    why = _why_not(_PROCESSES)
    if not why and outer == 0:
        why = "processes of root cannot be counted: it lacks CAP_SYS_ADMIN to become another user"
    if why:
        made.missing["processes"] = why
    return _with_network(made)


def _with_network(made: Enclosure) -> Enclosure:
    why = _why_not(CLONE_NEWNET)
    if why:
        made.missing["network"] = why
    return made


def _own_users() -> str:
    """Enter a user namespace in which we are who we are; why not, where that fails."""
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
