"""Another rank's process as its parent sees it: started, told jobs by lines of JSON, ended.

It ends by itself when its parent does: its input is closed then.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from contextlib import suppress
from subprocess import PIPE, Popen, TimeoutExpired
from tempfile import TemporaryFile
from typing import Any

from weft.core.errors import StartError

PROGRAM = "weft.decoding.speculative.drafters.layer_parallel.rank"
READY = b"ready\n"
_GRACE_S = 5.0
_TAIL_BYTES = 2000


class Child:
    """A process of our own program, started afresh: threads of this process do not matter."""

    def __init__(self, rank: int, first: dict[str, Any]) -> None:
        self._rank = rank
        self._said = TemporaryFile()  # noqa: SIM115 - open as long as the process
        try:
            self._process = Popen(  # noqa: S603 - our own interpreter and program
                [sys.executable, "-P", "-m", PROGRAM],
                stdin=PIPE,
                stdout=PIPE,
                stderr=self._said,
                start_new_session=True,
            )
        except OSError as error:
            self._said.close()
            raise StartError(f"rank {rank} cannot be started: {error}") from error
        with suppress(OSError):  # it ended at once: found out, with its reason, by who waits for it
            self.tell(first)

    def tell(self, message: object) -> None:
        """Send one line. Raises: `OSError` when the process is gone."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def wait_until_ready(self, timeout_s: float) -> None:
        """Raises: `StartError` when the process ends, or takes longer."""
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        deadline = time.monotonic() + timeout_s
        heard = b""
        while READY not in heard:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                raise StartError(
                    f"rank {self._rank} was not ready after {timeout_s:g} s{self._tail()}"
                )
            piece = os.read(pipe, 4096)
            if not piece:
                raise StartError(f"rank {self._rank} ended before it was ready{self._tail()}")
            heard = heard[-len(READY) :] + piece

    def close(self) -> None:
        """End the process: by closing its input, and if it does not heed that, by force."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):  # it went before it had read the last line
                pipe.close()
        try:
            self._process.wait(_GRACE_S)
        except TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()

    def _tail(self) -> str:
        end = self._said.seek(0, os.SEEK_END)
        self._said.seek(max(end - _TAIL_BYTES, 0))
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""
