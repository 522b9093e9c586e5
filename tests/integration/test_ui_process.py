"""`weft ui` as a process of its own, beside a run that another process executes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

TOOLS = '''
import weft

@weft.tool
def told(name: str) -> str:
    """Greet."""
    print("a loud tool")
    return f"hello {name} <script>window.owned=1</script>"
'''
FLOW = """
name: asking
nodes:
  good: {tool: "./tools.py:told", with: {name: you}}
  sure: {ask: "Are you sure?", schema: {type: boolean}}
  last: {tool: "./tools.py:told", with: {name: "you, {{ sure }}"}}
outputs:
  text: "{{ last }}"
"""
PATIENCE_S = 180.0
WEFT = (sys.executable, "-c", "from weft.cli.entry import run; run()")
WITHOUT = """
import sys
sys.modules["starlette"] = None
from weft.cli.entry import run
run()
"""


def started(folder: Path, *words: str, code: str | None = None) -> subprocess.Popen[str]:
    command = WEFT if code is None else (sys.executable, "-c", code)
    return subprocess.Popen(
        [*command, *words],
        cwd=folder,
        env={**os.environ, "WEFT_JOURNAL": str(folder / "journal.sqlite")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Nothing of the test outlives it."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@contextmanager
def page_of(folder: Path) -> Iterator[tuple[subprocess.Popen[str], httpx2.Client]]:
    """A running `weft ui`, and a client that has its key."""
    with ended(started(folder, "ui", "--no-open")) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        found = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/#key=([\w-]{32,})", url)
        assert found, (url, process.communicate() if process.poll() is not None else "")
        headers = {"authorization": f"Bearer {found[2]}"}
        with httpx2.Client(
            base_url=found[1], headers=headers, timeout=PATIENCE_S, trust_env=False
        ) as client:
            yield process, client


def test_a_run_of_another_process_is_watched_and_answered(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "flow.yaml").write_text(FLOW)
    with page_of(tmp_path) as (page, http):
        assert http.get("/api/runs").json() == {"runs": []}
        with http.stream("GET", "/api/changes") as stream:
            changes = (line for line in stream.iter_lines() if line.startswith("event"))
            next(changes)
            with ended(started(tmp_path, "run", "flow.yaml", "--run-id", "watched")) as run:
                next(changes)
                _, err = run.communicate(timeout=PATIENCE_S)
                assert run.returncode == 4, err
        assert http.get("/api/run?run=watched").json()["summary"]["asking"] == ["sure"]
        found = http.get("/api/records?run=watched").json()["records"]
        asked = next(record for record in found if record["event"] == "HumanAsked")
        letter = {"kind": "answer", "node": "sure", "question": asked["seq"], "value": True}
        assert http.post("/api/letters?run=watched", json=letter).status_code == 202
        with ended(started(tmp_path, "resume", "watched", "--quiet")) as run:
            out, err = run.communicate(timeout=PATIENCE_S)
            assert run.returncode == 0, err
            assert "hello you, true" in out
        end = http.get("/api/run?run=watched").json()["summary"]
        assert (end["standing"], end["parts"]) == ("succeeded", 2)
        page.send_signal(signal.SIGINT)
        _, err = page.communicate(timeout=PATIENCE_S)
        assert page.returncode == 0
        assert "Traceback" not in err


PAYS = """
import time
import weft

@weft.tool(effect="once")
def pay(amount: int) -> str:
    with open("ledger", "a") as ledger:
        ledger.write(f"{amount}\\n")
    time.sleep(600)
    return "never"
"""
PAYING = """
name: paying
nodes:
  paid: {tool: "./tools.py:pay", with: {amount: 7}}
outputs:
  text: "receipt: {{ paid }}"
"""


def test_what_a_person_says_of_a_call_reaches_the_resumed_run(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(PAYS)
    (tmp_path / "flow.yaml").write_text(PAYING)
    with page_of(tmp_path) as (_, http):
        with ended(started(tmp_path, "run", "flow.yaml", "--run-id", "paying")) as run:
            patience = iter(range(6_000))
            ledger = tmp_path / "ledger"
            while not ledger.exists() or ledger.read_text() != "7\n":
                assert run.poll() is None, run.communicate()
                assert next(patience, None) is not None
                time.sleep(0.02)
            assert http.get("/api/unsettled?run=paying").json()["calls"] == []  # it may end well
            run.kill()
            run.wait(PATIENCE_S)
        (call,) = http.get("/api/unsettled?run=paying").json()["calls"]
        assert (call["node"], call["tool"]) == ("paid", "pay")
        letter = {"kind": "confirm", "node": "paid", "call": call["seq"], "value": "done"}
        said = {**letter, "returned": "by hand"}
        assert http.post("/api/letters?run=paying", json=said).status_code == 202
        with ended(started(tmp_path, "resume", "paying", "--quiet")) as run:
            out, err = run.communicate(timeout=PATIENCE_S)
            assert run.returncode == 0, err
            assert "receipt: by hand" in out
        assert ledger.read_text() == "7\n"
        assert http.get("/api/unsettled?run=paying").json()["calls"] == []
        assert http.post("/api/letters?run=paying", json=letter).status_code == 409


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with ended(started(tmp_path, "ui", "--no-open", "--port", port)) as process:
            out, err = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 1
            assert f"cannot listen on 127.0.0.1:{port}" in err
            assert "another port" in err
            assert out == ""


def test_without_the_libraries_the_hint_says_how_to_get_them(tmp_path: Path) -> None:
    with ended(started(tmp_path, "ui", code=WITHOUT)) as process:
        _, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 1
        assert "pip install 'weft[gateway]'" in err
        assert "Traceback" not in err


@pytest.mark.parametrize("content", [b"no database" * 1_000, b""])
def test_a_journal_that_is_none_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other.sqlite").write_bytes(content)
    with ended(started(tmp_path, "ui", "--journal", "other.sqlite", "--port", "70000")) as process:
        _, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 2
        assert "Traceback" not in err
    if content:
        words = ("ui", "--no-open", "--journal", "other.sqlite")
        with ended(started(tmp_path, *words)) as process:
            out, err = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 1, (out, err)
            assert "other.sqlite" in err
            assert "Traceback" not in err
