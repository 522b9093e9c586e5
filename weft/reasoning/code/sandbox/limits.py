"""How much a program may take. Knows no system call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one run, for the program and all that it starts.

    `wall_s`: from its start to its end. `cpu_s`: processor time of any one of its processes, in
    whole seconds. `memory_bytes`: address space of any one of them, and memory in use of all
    together. `processes`: processes and threads at one time. `open_files` of one process.
    `file_bytes` of one file, `disk_bytes` and `disk_files` of its directory; that directory is held
    in memory, besides `memory_bytes`. `output_bytes`: of what it prints and of what it complains,
    each. `input_bytes`: of its standard input and of its files together.

    Raises: `ValueError` for what is not positive.
    """

    wall_s: float = 10.0
    cpu_s: int = 10
    memory_bytes: int = 512 * _MIB
    processes: int = 8
    open_files: int = 64
    file_bytes: int = 16 * _MIB
    disk_bytes: int = 32 * _MIB
    disk_files: int = 1024
    output_bytes: int = _MIB
    input_bytes: int = 16 * _MIB

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
