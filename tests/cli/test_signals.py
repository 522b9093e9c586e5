"""Ctrl-C and SIGTERM on a real process; stdout kept for one document in a real process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = '''
import asyncio, os, subprocess, sys, threading
import weft

@weft.tool
def quick() -> str:
    """Return at once, after some noise."""
    print("noise from print")
    os.write(1, b"noise from a file descriptor\\n")
    subprocess.run([sys.executable, "-c", "print('noise from a child')"], check=True)
    return "the quick result"

@weft.tool
def blocks() -> str:
    """Block a thread for ever."""
    print("begun", file=sys.stderr, flush=True)
    threading.Event().wait()
    return ""

@weft.tool
async def refuses() -> str:
    """Refuse to be cancelled."""
    print("begun", file=sys.stderr, flush=True)
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            print("refused", file=sys.stderr, flush=True)
'''
FLOW = """
name: stuck
nodes:
  quick: {tool: "./tools.py:quick"}
  slow: {tool: "./tools.py:SLOW"}
outputs:
  quick: "{{ quick }}"
"""


PATIENCE_S = 120.0
WEFT = "from weft.cli.entry import run; run()"
# A run that waits for ever for code that refuses to stop: only a second signal ends it.
PATIENT = f"""
from weft.engine.runner.tasks import CancellingTasks
wait = CancellingTasks.wait
CancellingTasks.wait = lambda self, grace_s, clock: wait(self, 600.0, clock)
{WEFT}
"""


def started(folder: Path, slow: str, *options: str, program: str = WEFT) -> subprocess.Popen[str]:
    """A run whose `quick` has succeeded, and whose `slow` has begun unless it is as quick."""
    (folder / "tools.py").write_text(TOOLS)
    (folder / "flow.yaml").write_text(FLOW.replace("SLOW", slow))
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            program,
            "run",
            "flow.yaml",
            *options,
        ],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    said(process, "quick succeeded", *(() if slow == "quick" else ("begun",)))
    return process


def said(process: subprocess.Popen[str], *words: str) -> None:
    """Wait until the process has said all of `words` on stderr, in lines of any order."""
    assert process.stderr is not None
    left = set(words)
    for line in process.stderr:
        left -= {each for each in left if each in line}
        if not left:
            return
    pytest.fail(f"it ended without saying {words!r}: {process.wait()}")


LOADING = """
import os, signal, sys

class Early:
    def find_spec(self, name, path=None, target=None):
        if name == "weft.cli.main":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Early())
from weft.cli.entry import run
run()
"""


def test_a_program_that_still_loads_ends_without_a_word() -> None:
    ended = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True)
    assert ended.returncode == -signal.SIGINT
    assert ended.stdout + ended.stderr == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_ends_the_run_in_order(tmp_path: Path, number: signal.Signals) -> None:
    process = started(tmp_path, "blocks")
    process.send_signal(number)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "stuck was interrupted after" in out
    assert "the quick result" in out


def test_code_that_refuses_to_stop_is_named_and_left_behind(tmp_path: Path) -> None:
    process = started(tmp_path, "refuses")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "did not stop when cancelled: slow" in out


def test_the_second_signal_ends_the_process_at_once(tmp_path: Path) -> None:
    process = started(tmp_path, "refuses", program=PATIENT)
    process.send_signal(signal.SIGINT)
    said(process, "refused")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "was interrupted" not in out, "it did not wait for the end in order"


def test_stdout_holds_the_document_and_nothing_else(tmp_path: Path) -> None:
    process = started(tmp_path, "quick", "--json")
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert json.loads(out)["outputs"] == {"quick": "the quick result"}
    assert out.count("\n") == 1
