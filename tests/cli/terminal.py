"""A process on a real (pseudo) terminal, and what a person would see there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import pytest

PATIENCE_S = 120
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
SHOW_CURSOR = "\x1b[?25h"


class Terminal:
    """The process of `command`, in a session of its own, and what it has shown so far: `screen`.

    Its stdin and stderr are the terminal, and its stdout unless that is `piped`. As a context
    manager it ends the process, whatever has happened.
    """

    def __init__(
        self, command: Sequence[str], folder: Path | None = None, *, piped: bool = False
    ) -> None:
        self.screen = ""
        self._main, side = pty.openpty()
        self._hung_up = False
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=side,
            stderr=side,
            stdout=subprocess.PIPE if piped else side,
            text=True,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color"},
        )
        os.close(side)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
        self.hang_up()

    def wait_for(self, words: str | re.Pattern[str]) -> str:
        """Read until the words are there, whatever their colours; the words."""
        pattern = words if isinstance(words, re.Pattern) else re.compile(re.escape(words))
        while (found := pattern.search(COLOUR.sub("", self.screen))) is None:
            self.screen += self._read() or pytest.fail(f"no {words!r} in {self.screen!r}")
        return found[0]

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._main, keys.encode())

    def hang_up(self) -> None:
        """Close the terminal. Harmless when repeated."""
        if not self._hung_up:
            os.close(self._main)
            self._hung_up = True

    def end(self) -> str:
        """Wait for the process; what it printed to stdout where that is piped."""
        while not self._hung_up and (piece := self._read()):
            self.screen += piece
        out, _ = self.process.communicate(timeout=PATIENCE_S)
        return out or ""

    def _read(self) -> str:
        if not select.select([self._main], [], [], PATIENCE_S)[0]:
            self.process.kill()
            return ""
        try:
            return os.read(self._main, 65536).decode("utf-8", "replace")
        except OSError:  # the other side is closed
            return ""
