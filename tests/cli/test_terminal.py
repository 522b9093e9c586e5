"""`weft run` on a real (pseudo) terminal: the live view, a prompt, Ctrl-C as a key."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("needs pseudo terminals", allow_module_level=True)

import fcntl
import pty
import struct
import termios

PATIENCE_S = 60
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
SHOW_CURSOR = "\x1b[?25h"
MAIN = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from weft.cli.entry import run
run()
"""
TOOLS = '''
import asyncio, sys
import weft

@weft.tool
async def patient(items: int) -> list[int]:
    """Take long enough to be seen."""
    await asyncio.sleep(0.3)
    return list(range(items))
'''
FLOW = """
name: seen
nodes:
  numbers: {tool: "./tools.py:patient", with: {items: 3}}
  colour:
    ask: "Which [bold]colour[/]?"
    schema: {enum: [red, blue]}
    after: numbers
outputs:
  colour: "{{ colour }}"
"""


class Terminal:
    """A process with a terminal for stdin and stderr, and what it has shown so far."""

    def __init__(self, folder: Path) -> None:
        (folder / "tools.py").write_text(TOOLS)
        (folder / "flow.yaml").write_text(FLOW)
        self.screen = ""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", MAIN, "run", "flow.yaml"],
            cwd=folder,
            stdin=slave,
            stderr=slave,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color"},
        )
        os.close(slave)

    def wait_for(self, words: str) -> None:
        while words not in COLOUR.sub("", self.screen):
            self.screen += self._read() or pytest.fail(f"no {words!r} in {self.screen!r}")

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def end(self) -> str:
        """Wait for the process; what it printed to stdout."""
        while piece := self._read():
            self.screen += piece
        out, _ = self.process.communicate(timeout=60)
        os.close(self._master)
        return out

    def _read(self) -> str:
        if not select.select([self._master], [], [], PATIENCE_S)[0]:
            self.process.kill()
            return ""
        try:
            return os.read(self._master, 65536).decode("utf-8", "replace")
        except OSError:  # the other side is closed
            return ""


def test_the_live_view_makes_room_for_a_question(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.wait_for("critical path so far")
    terminal.wait_for("colour asks: Which [bold]colour[/]?")
    terminal.wait_for("one of 1: red, 2: blue > ")
    terminal.type("green\n")
    terminal.wait_for("none of the choices")
    terminal.type("2\n")
    out = terminal.end()
    assert terminal.process.returncode == 0
    assert "colour\nblue\n" in out
    assert "\x1b" not in out
    assert terminal.screen.rindex(SHOW_CURSOR) > terminal.screen.rindex("critical path so far")


def test_ctrl_c_at_a_prompt_ends_the_run_and_leaves_the_cursor_on(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.wait_for("2: blue > ")
    terminal.type("\x03")
    out = terminal.end()
    assert terminal.process.returncode == 130
    assert "seen was interrupted" in out
    assert terminal.screen.count("\x1b[?25l") <= terminal.screen.count(SHOW_CURSOR)
