"""`--debug` shows tracebacks, `-q` hides no failure, `-v` logs, before the command and after it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import go_into, typed

SECRET = "sk-very-secret-0815"
FLOW = """
name: f
tools: {broken: ./tools.py:broken}
nodes:
  one: {tool: broken, with: {}}
outputs: {one: "{{ one }}"}
"""
TOOLS = f"""
import weft

@weft.tool
def broken() -> int:
    return deeper()

def deeper() -> int:
    raise ValueError("red \\x1b[31m bell \\x07 key {SECRET}")
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    go_into(tmp_path, monkeypatch)
    monkeypatch.setenv("MY_API_KEY", SECRET)
    Path("flow.yaml").write_text(FLOW)
    Path("tools.py").write_text(TOOLS)
    weft = logging.getLogger("weft")
    level, handlers = weft.level, list(weft.handlers)
    yield
    weft.setLevel(level)
    weft.handlers[:] = handlers


def test_debug_shows_the_traceback_of_a_failed_node() -> None:
    shown = typed("run", "flow.yaml", "--debug")
    assert shown.exit_code == 1
    assert "Traceback (most recent call last):" in shown.stderr
    assert "in deeper" in shown.stderr
    assert "ValueError: red" in shown.stderr
    for forbidden in ("\x1b", "\x07", SECRET):
        assert forbidden not in shown.output + shown.stderr
    assert "Traceback" not in typed("run", "flow.yaml").stderr


def test_quiet_says_why_there_is_no_output() -> None:
    shown = typed("run", "flow.yaml", "-q")
    assert shown.exit_code == 1
    assert "one failed: ToolRaised: broken raised ValueError" in shown.stderr


@pytest.mark.parametrize(
    "words", [("-v", "run", "flow.yaml"), ("run", "flow.yaml", "-v"), ("run", "-v", "flow.yaml")]
)
def test_verbose_works_before_and_after_the_command(words: tuple[str, ...]) -> None:
    shown = typed(*words)
    assert "INFO weft.runs: " in shown.stderr
    assert ": one failed: ToolRaised\n" in shown.stderr
    assert "DEBUG" not in shown.stderr


def test_twice_verbose_shows_every_node_and_no_secret() -> None:
    shown = typed("run", "flow.yaml", "-vv")
    assert "DEBUG weft.nodes: " in shown.stderr
    assert "one starts, attempt 1" in shown.stderr
    assert SECRET not in shown.stderr
    assert "\x1b" not in shown.stderr


def test_commands_below_a_command_have_it_too() -> None:
    assert typed("runs", "list", "-v").exit_code == 0
