"""The command that the keeper runs, and its limits."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """The limits of one run, for the program and all processes that it starts.

    `wall_s`: wall time. `cpu_s`: processor time of any one process, in whole seconds.
    `memory_bytes`: address space of any one process, and memory in use of all together.
    `processes`: processes and threads at one time. `open_files`: of one process. `file_bytes`: of
    one file; `disk_bytes` and `disk_files`: of the directory, which is in memory, in addition to
    `memory_bytes`. `output_bytes`: of stdout and of stderr, each. `input_bytes`: of stdin and the
    files together.

    Raises: `ValueError` for a limit that is not positive.
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


@dataclass(frozen=True, slots=True)
class SandboxRequest:
    """Run `command` with `stdin` and `files` (by path below the box) within `limits`.

    `reads`: readable paths; `box`: the host directory to use where no mount namespace can hold one.
    `allow` names protections that may be missing. `parent`: the process to die with; `report`: the
    file descriptor for the result. `probe`: set up everything and run nothing.
    """

    command: tuple[str, ...]
    stdin: bytes
    files: Mapping[str, bytes]
    environment: Mapping[str, str]
    reads: tuple[str, ...]
    limits: SandboxLimits
    allow: tuple[str, ...]
    parent: int = 0
    report: int = 2
    box: str = ""
    probe: bool = False

    def as_json(self) -> bytes:
        plain: dict[str, Any] = {**asdict(self), "stdin": _encoded(self.stdin)}
        plain["files"] = {name: _encoded(content) for name, content in self.files.items()}
        return json.dumps(plain).encode()

    @staticmethod
    def from_json(text: bytes) -> SandboxRequest:
        plain: dict[str, Any] = json.loads(text)
        plain["stdin"] = base64.b64decode(plain["stdin"])
        plain["files"] = {name: base64.b64decode(data) for name, data in plain["files"].items()}
        plain["limits"] = SandboxLimits(**plain["limits"])
        plain.update({name: tuple(plain[name]) for name in ("command", "reads", "allow")})
        return SandboxRequest(**plain)


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
