"""Tools that misbehave in every way, through the whole stack: the run ends and says why."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

TOOLS = '''
import asyncio
import threading

import weft


@weft.tool
def raises(word: str) -> str:
    """Raises."""
    raise ValueError(f"no {word}")


@weft.tool
def blocks(word: str) -> str:
    """Blocks its thread for ever."""
    threading.Event().wait()
    return word


@weft.tool
async def clings(word: str) -> str:
    """Swallows its cancellation, again and again."""
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


@weft.tool
def lies(word: str) -> int:
    """Promises a number."""
    return word


@weft.tool(isolate=weft.Isolation(output_bytes=100_000))
def floods(word: str) -> str:
    """Prints and prints."""
    while True:
        print(word * 1000)


@weft.tool
def fine(word: str) -> str:
    """Works."""
    return word.upper()
'''
FLOW = """
name: hostile
nodes:
  raises: {tool: ./tools.py:raises, with: {word: a}}
  blocks: {tool: ./tools.py:blocks, with: {word: a}, timeout: 2s}
  clings: {tool: ./tools.py:clings, with: {word: a}, timeout: 2s}
  lies: {tool: ./tools.py:lies, with: {word: a}}
  floods: {tool: ./tools.py:floods, with: {word: a}}
  fine: {tool: ./tools.py:fine, with: {word: a}}
  after: {tool: ./tools.py:fine, with: {word: "{{ fine }} and {{ raises }}"}}
outputs: {fine: "{{ fine }}", after: "{{ after }}"}
"""
ERRORS = {
    "raises": "ToolRaised",
    "blocks": "NodeTimeout",
    "clings": "NodeTimeout",
    "lies": "ToolResultError",
    "floods": "ToolLimitError",
}


def test_no_tool_hangs_or_kills_a_run(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "flow.yaml").write_text(FLOW)
    command = [sys.executable, "-m", "weft", "run", str(tmp_path / "flow.yaml"), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 1, ended.stderr
    told = json.loads(ended.stdout)
    outcomes = told["outcomes"]
    assert {name: outcomes[name]["failure"]["error"] for name in ERRORS} == ERRORS
    assert told["outputs"] == {"fine": "A"}
    assert outcomes["after"]["status"] == "skipped"
    assert "raises" in told["missing"]["after"]
    assert told["leaked"] == ["blocks", "clings"]


def test_the_table_says_what_happened(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "flow.yaml").write_text(FLOW)
    command = [sys.executable, "-m", "weft", "run", str(tmp_path / "flow.yaml")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    table = ended.stdout
    for name, error in ERRORS.items():
        assert any(line.startswith(f"{name} ") and error in line for line in table.splitlines())
    assert "did not stop when cancelled: blocks, clings" in table
