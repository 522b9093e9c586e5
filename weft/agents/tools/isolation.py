"""The limits of a tool that runs in a process of its own.

Knows numbers only; `weft.agents.tools.process` holds a process to them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from weft.core.errors import BuildError

_MIB: Final = 1024 * 1024
_LEAST_MEMORY: Final = 128 * _MIB


@dataclass(frozen=True, slots=True)
class Isolation:
    """Run each call of a tool in a fresh subprocess that is killed when it goes too far.

    timeout_s     seconds of wall time, the start of the process included
    memory_bytes  address space, of each process of the tool (macOS does not enforce it)
    output_bytes  what it prints, and likewise what it returns and logs
    cpu_s         processor seconds; None: only `timeout_s` counts
    file_bytes    the largest file it may write
    env           names of environment variables to pass on. All others are withheld, secrets among
                  them, but for PATH, HOME, TMPDIR, the locale and the time zone

    It protects weft from a tool that loops, blocks, crashes, floods, leaks or leaves processes
    behind: these end as a `ToolLimitError` or a `ToolRaised`, and nothing stays running.

    It is **not a sandbox**. The tool is the same user on the same machine. It can read and delete
    the user's files and the secrets in them, use the network, signal other processes, fill the disk
    with many files, fork until the user's process limit, start a session of its own on purpose and
    so escape the cleanup, lie about its own result, and exploit bugs of the kernel. When weft is
    killed with SIGKILL, the tool's process ends too (on Linux), but not what that has started.
    Run code that you do not trust in a container or a virtual machine.

    The function must be importable by the subprocess (top level of a module or a file). It runs
    without what the parent holds in memory: globals changed at run time, open connections, caches.
    """

    timeout_s: float = 30.0
    memory_bytes: int = 2048 * _MIB
    output_bytes: int = 16 * _MIB
    cpu_s: int | None = None
    file_bytes: int = 256 * _MIB
    env: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if os.name != "posix":
            raise BuildError("isolation needs a POSIX system", hint="leave isolate out here")
        limits = (self.timeout_s, self.output_bytes, self.file_bytes)
        if not all(limit > 0 for limit in limits) or (self.cpu_s is not None and self.cpu_s < 1):
            raise BuildError(f"the limits of an isolation must be positive: {self}")
        if self.memory_bytes < _LEAST_MEMORY:
            raise BuildError(
                f"an isolated tool needs at least {_LEAST_MEMORY:,} bytes of memory to start,"
                f" got {self.memory_bytes:,}"
            )
