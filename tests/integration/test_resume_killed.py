"""A process that is killed loses nothing that was finished: `weft resume` goes on from there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

TOOLS = '''
import os, time
from pathlib import Path
import weft

def wrote(name, text):
    with open(name, "a") as file:
        file.write(text + "\\n")

@weft.tool
def slow(item: int) -> int:
    """Square, and wait at the gate for those that it holds back."""
    while item >= 3 and not Path("gate").exists():
        time.sleep(0.01)
    wrote("calls", str(item))
    return item * item

@weft.tool(effect="once")
def book(total: int) -> str:
    """Book it, once."""
    wrote("ledger", str(total))
    return f"booked {total}"

def add(values: list[int]) -> int:
    return sum(values)
'''
FLOW = """
name: books
tools: {slow: "./tools.py:slow", book: "./tools.py:book"}
nodes:
  squares: {map: [1, 2, 3, 4, 5], as: i, width: 2, do: {tool: slow, with: {item: "{{ i }}"}}}
  total: {reduce: "./tools.py:add", over: "{{ squares }}"}
  twice:
    loop: {value: "{{ v * 2 }}"}
    as: v
    start: "{{ total }}"
    until: "{{ iteration >= 3 }}"
    max: 5
  booked: {tool: book, with: {total: "{{ twice }}"}}
  sure: {ask: "Booked {{ twice }}?", schema: boolean, after: booked}
outputs: {booked: "{{ booked }}", sure: "{{ sure }}", squares: "{{ squares }}"}
"""
OUTPUTS = {"booked": "booked 440", "sure": True, "squares": [1, 4, 9, 16, 25]}
PATIENCE_S = 300.0
WEFT = [sys.executable, "-c", "from weft.cli.entry import run; run()"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "books.yaml").write_text(FLOW)
    return tmp_path


def started(folder: Path, *words: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "WEFT_JOURNAL": str(folder / "journal.sqlite")}
    return subprocess.Popen(
        [*WEFT, *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ran(folder: Path, *words: str) -> tuple[int, Any]:
    """The status of a command, and the document that it printed."""
    with started(folder, *words, "--json") as process:
        out, err = process.communicate(timeout=PATIENCE_S)
    assert out, err
    return process.returncode, json.loads(out)


def until_written(folder: Path, name: str, lines: int) -> None:
    file = folder / name
    deadline = time.monotonic() + PATIENCE_S
    while not file.exists() or len(file.read_text().splitlines()) < lines:
        assert time.monotonic() < deadline, f"{name} has not come"
        time.sleep(0.01)


def until_recorded(folder: Path, ends: int) -> None:
    """Until so many nodes have ended in the journal, as another process reads it."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        _, shown = ran(folder, "runs", "show", "one")
        outcomes = shown.get("outcomes", {}).values()
        if sum(node["status"] == "succeeded" for node in outcomes) >= ends:
            return
        assert time.monotonic() < deadline, shown


def test_a_killed_run_is_resumed_with_equal_results(folder: Path) -> None:
    with started(folder, "run", "books.yaml", "--run-id", "one") as process:
        until_written(folder, "calls", 2)
        until_recorded(folder, 2)
        assert ran(folder, "resume", "one")[0] == 1  # somebody has it
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
    assert [run["standing"] for run in ran(folder, "runs")[1]] == ["interrupted"]
    (folder / "gate").touch()
    status, document = ran(folder, "resume", "one", "--answer", "sure=y")
    assert (status, document["outputs"]) == (0, OUTPUTS)
    assert sorted((folder / "calls").read_text().split()) == ["1", "2", "3", "4", "5"]
    assert (folder / "ledger").read_text() == "440\n"
    status, undisturbed = ran(folder, "run", "books.yaml", "--answer", "sure=y")
    assert (status, undisturbed["outputs"]) == (0, document["outputs"])
    status, replayed = ran(folder, "replay", "one")
    nodes = 5 + 5 + 3  # those of the workflow, of the map, of the loop
    assert (status, replayed["identical"]) == (0, nodes)


def test_another_process_answers(folder: Path) -> None:
    (folder / "gate").touch()
    with started(folder, "run", "books.yaml", "--run-id", "one", "--json") as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "asks:" in line:
                break
        answered = started(folder, "answer", "one", "sure", "y")
        said, _ = answered.communicate(timeout=PATIENCE_S)
        assert "sure" in said
        out, _ = process.communicate(timeout=PATIENCE_S)
    document = json.loads(out)
    if document["exit_code"] != 0:  # it had given up before: nobody could answer there
        status, document = ran(folder, "resume", "one")
        assert status == 0
    assert document["outputs"] == OUTPUTS
    assert (folder / "ledger").read_text() == "440\n"


def test_ctrl_c_leaves_a_run_that_is_resumed(folder: Path) -> None:
    with started(folder, "run", "books.yaml", "--run-id", "one") as process:
        until_written(folder, "calls", 2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "interrupted: resume it with `weft resume one`" in err
    (folder / "gate").touch()
    status, document = ran(folder, "resume", "one", "--answer", "sure=y")
    assert (status, document["outputs"]) == (0, OUTPUTS)
    assert (folder / "ledger").read_text() == "440\n"
