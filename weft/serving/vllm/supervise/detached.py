"""A supervisor in a process of its own, which outlives the program that started it.

That process runs `python -m weft.serving.vllm.supervise.detached ID`, where ID is its entry in the
registry.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass

from weft.core.errors import ServeError, StartError, WeftError, convert
from weft.serving.vllm.launch.command import Maker, maker
from weft.serving.vllm.launch.spec import ServeSpec
from weft.serving.vllm.supervise import failure, registry
from weft.serving.vllm.supervise.processes import Identity
from weft.serving.vllm.supervise.registry import ServingEntry
from weft.serving.vllm.supervise.replica_process import HealthPolicy
from weft.serving.vllm.supervise.state_folders import log_folder
from weft.serving.vllm.supervise.supervisor import ServerSupervisor

COMMAND = [sys.executable, "-m", "weft.serving.vllm.supervise.detached"]


@dataclass(frozen=True, slots=True)
class SupervisionTerms:
    """How a serving is supervised; the fields are those of `ServingEntry`, times in seconds."""

    drain_s: float = 30.0
    start_timeout_s: float = 1800.0
    keep_alive_s: float | None = None


def start(spec: ServeSpec, terms: SupervisionTerms) -> ServingEntry:
    """Start a supervisor and register it; the caller has locked the registry. Does not wait.

    Raises: `StartError` when no process can be started, `ServeError`.
    """
    serving = registry.new_id(spec.name)
    log = log_folder(serving) / failure.LOG
    try:
        with open(log, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as output:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [*COMMAND, serving],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
    except OSError as error:
        raise StartError(f"no process can be started: {error}", stage_reached="spawn") from error
    threading.Thread(target=process.wait, daemon=True).start()  # prevents a zombie
    entry = entry_for(serving, spec, terms, Identity.of(process.pid))
    registry.write(entry)
    return entry


def entry_for(
    serving: str, spec: ServeSpec, terms: SupervisionTerms, supervisor: Identity
) -> ServingEntry:
    """A new registry entry."""
    return ServingEntry(serving, spec, supervisor, **asdict(terms))


def supervise(serving: str, make: Maker | None = None, health: HealthPolicy | None = None) -> int:
    """Run as the supervisor of an entry. Returns the exit status.

    `make` and `health` replace the installed engine and the default policy.
    """
    try:
        with registry.locked():
            entry = registry.entry_of(serving)
        if entry is None:
            raise ServeError(f"there is no entry {serving}")
        make = make or maker(entry.spec, entry.drain_s)
        asyncio.run(ServerSupervisor(entry, make, show=_log, health=health).run())
        return 0
    except Exception as raised:  # noqa: BLE001 - clients that wait need to know about any failure
        error = raised if isinstance(raised, WeftError) else convert(raised)
        _log(str(error))
        failure.write(serving, error)
        return 1


def _log(text: str) -> None:
    print(time.strftime("%Y-%m-%d %H:%M:%S"), text, flush=True)


if __name__ == "__main__":
    sys.exit(supervise(sys.argv[1]))
