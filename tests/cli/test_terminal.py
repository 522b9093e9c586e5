"""`weft run` on a real (pseudo) terminal: the live view, a prompt, Ctrl-C as a key."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("needs pseudo terminals", allow_module_level=True)

from tests.cli.terminal import SHOW_CURSOR, Terminal

MAIN = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from weft.cli.entry import run
run()
"""
TOOLS = '''
import asyncio
from pathlib import Path
import weft

@weft.tool
async def patient(items: int) -> list[int]:
    """Go on until somebody has seen it."""
    while not Path("seen").exists():
        await asyncio.sleep(0.01)
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


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "flow.yaml").write_text(FLOW)
    with Terminal([sys.executable, "-c", MAIN, "run", "flow.yaml"], tmp_path, piped=True) as found:
        yield found


def test_the_live_view_makes_room_for_a_question(terminal: Terminal, tmp_path: Path) -> None:
    terminal.wait_for("critical path so far")
    (tmp_path / "seen").touch()
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


def test_ctrl_c_at_a_prompt_ends_the_run_and_leaves_the_cursor_on(
    terminal: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "seen").touch()
    terminal.wait_for("2: blue > ")
    terminal.type("\x03")
    out = terminal.end()
    assert terminal.process.returncode == 130
    assert "seen was interrupted" in out
    assert terminal.screen.count("\x1b[?25l") <= terminal.screen.count(SHOW_CURSOR)
