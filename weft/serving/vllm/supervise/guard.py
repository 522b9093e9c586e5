"""Guards one engine for weft: when either dies, ends every process that the engine started.

Runs by path in a session of its own (`python -I -S guard.py`), with the standard library only: it
must start before the engine and outlive it. Models, ports and health are not its concern.

Standard input is a pipe whose other end only weft has open. Its first line is `{"argv": [...],
"grace_s": 5}`, later ones are `stop SECONDS` and `kill`. Its end means that weft is gone, even by
SIGKILL. On standard output the guard writes `engine PID`, and at last `exited CODE`. The engine
writes to standard error. On Linux orphans of the engine become the guard's children, so that none
can escape; elsewhere only the engine's process group can be reached.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_LINUX: Final = sys.platform == "linux"
_TIDY_S: Final = 10.0
_UNKILLABLE_S: Final = 40.0
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_NOT_STARTED: Final = 127


class EngineGuard:
    """One engine from its start to the end of its last descendant."""

    def __init__(self, argv: list[str], grace_s: float, rest: bytes = b"") -> None:
        self._argv = argv
        self._grace_s = grace_s
        self._unread = rest
        self._deadline: float | None = None
        self._killed = False
        self._engine = 0
        self._code: int | None = None

    def run(self) -> int:
        """Run and end the engine. Returns its exit status; negative is a signal."""
        wake, waker = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(waker, False)
        for number in (signal.SIGCHLD, *_SIGNALS):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        if _LINUX:
            _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        if self._start():
            self._watch(wake)
        self._end_everything()
        return _NOT_STARTED if self._code is None else self._code

    def _start(self) -> bool:
        try:
            process = subprocess.Popen(  # noqa: S603 - weft's own command, no shell
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=2,
                process_group=0,
                preexec_fn=_die_with(os.getpid()),  # noqa: PLW1509 - this process has one thread
            )
        except OSError as error:
            print(f"cannot start {self._argv[0]}: {error}", file=sys.stderr, flush=True)
            return False
        self._engine = process.pid
        _send(f"engine {process.pid}")
        return True

    def _watch(self, wake: int) -> None:
        """Returns when the engine has ended, its grace is over, or it is to be killed."""
        waiting = select.poll()
        waiting.register(wake, select.POLLIN)
        waiting.register(0, select.POLLIN)
        self._execute(b"")
        while not self._killed and not self._reap():
            left = None if self._deadline is None else self._deadline - time.monotonic()
            if left is not None and left <= 0:
                return
            for fd, _ in waiting.poll(None if left is None else left * 1000):
                if fd == wake:
                    self._signalled(os.read(wake, 64))
                elif data := os.read(0, 4096):
                    self._execute(data)
                else:
                    waiting.unregister(0)
                    self._stop(self._grace_s)

    def _signalled(self, numbers: bytes) -> None:
        if any(number in numbers for number in _SIGNALS):
            self._stop(self._grace_s)

    def _execute(self, data: bytes) -> None:
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            if line == b"kill":
                self._killed = True
            elif line.startswith(b"stop "):
                self._stop(float(line[5:]))

    def _stop(self, grace_s: float) -> None:
        """Ask the engine to end. A later call can only shorten its grace."""
        deadline = time.monotonic() + grace_s
        if self._deadline is None:
            with suppress(ProcessLookupError):
                os.kill(self._engine, signal.SIGTERM)
            self._deadline = deadline
        self._deadline = min(self._deadline, deadline)

    def _reap(self) -> bool:
        """Reap dead children; whether the engine itself has ended."""
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == self._engine:
                    self._code = os.waitstatus_to_exitcode(status)
        return self._code is not None

    def _end_everything(self) -> None:
        """Kill what is left, resource trackers last, as they clean up after the others.

        Their time begins when only they are left: on a busy machine the others take long to die.
        """
        start = alone = time.monotonic()
        while (now := time.monotonic()) - start < _UNKILLABLE_S:
            self._reap()
            left = list(_descendants()) if _LINUX else self._group()
            if not left:
                return
            doomed = [pid for pid in left if not _tidies(pid)]
            if doomed:
                alone = now
            for pid in left if now - alone > _TIDY_S else doomed:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        print("some processes of the engine cannot be killed", file=sys.stderr, flush=True)

    def _group(self) -> list[int]:
        """The engine's group as an argument of `kill`, while it exists. Not for Linux."""
        try:
            os.killpg(self._engine, 0)
        except (ProcessLookupError, PermissionError):
            return []
        return [-self._engine]


def _prctl(option: int, value: int) -> None:
    import ctypes

    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _die_with(parent: int) -> Callable[[], None] | None:
    """Setup of the child that makes the engine die with the guard. Only on Linux."""
    if not _LINUX:
        return None
    import ctypes

    prctl = ctypes.CDLL(None).prctl

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def _descendants() -> Iterator[int]:
    """All descendants of this process, parents first."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib is slow to import
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    parent = int(file.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    waiting = children.get(os.getpid(), [])
    while waiting:
        pid = waiting.pop(0)
        yield pid
        waiting.extend(children.get(pid, []))


def _tidies(pid: int) -> bool:
    """Whether it is a resource tracker, which ends by itself after removing shared memory."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
            return b"multiprocessing.resource_tracker" in file.read()
    except OSError:
        return False


def _send(text: str) -> None:
    with suppress(OSError):  # weft is gone, as the end of standard input shows too
        os.write(1, text.encode() + b"\n")


def main() -> None:
    """Read the command and execute it."""
    data = b""
    while b"\n" not in data:
        piece = os.read(0, 65536)
        if not piece:
            return
        data += piece
    line, _, rest = data.partition(b"\n")
    command = json.loads(line)
    code = EngineGuard(command["argv"], command["grace_s"], rest).run()
    _send(f"exited {code}")
    sys.stderr.flush()
    os._exit(0)  # nothing is left to clean up, whatever handlers have open


if __name__ == "__main__":
    main()
