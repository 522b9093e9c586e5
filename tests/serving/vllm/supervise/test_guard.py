"""The guard alone, with a pipe in our hand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.serving.vllm.fake_engine import WORKER
from tests.serving.vllm.supervise.polling import until
from weft.serving.vllm.supervise import guard as guard_module

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up'); "
ENGINE = f"""
import subprocess, sys, time
subprocess.run([sys.executable, "-I", "-S", "-c", {WORKER!r}], stdout=2)
print("up", flush=True)
time.sleep(600)
"""
Guard = subprocess.Popen[bytes]
Start = Callable[..., Guard]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[Guard] = []

    def run(argv: list[str], grace_s: float = 0.2) -> Guard:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", guard_module.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        started.append(process)
        say(process, json.dumps({"argv": argv, "grace_s": grace_s}) + "\n")
        return process

    yield run
    for process in started:
        if process.poll() is None:
            for below in psutil.Process(process.pid).children(recursive=True):
                below.kill()
            process.kill()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        process.wait()


def say(guard: Guard, text: str) -> None:
    assert guard.stdin is not None
    guard.stdin.write(text.encode())


def up(guard: Guard) -> list[psutil.Process]:
    """Wait until engine and worker said that they are there; all processes below the guard."""
    assert guard.stderr is not None
    assert guard.stdout is not None
    assert guard.stdout.readline().startswith(b"engine ")
    said = b""
    while said.count(b"\n") < 2:
        said += os.read(guard.stderr.fileno(), 100)
    return psutil.Process(guard.pid).children(recursive=True)


def ended(guard: Guard) -> int:
    """The engine's exit status as the guard tells it."""
    assert guard.stdout is not None
    last = guard.stdout.read().split()
    assert last[0] == b"exited"
    assert guard.wait(120) == 0
    return int(last[1])


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


@pytest.mark.parametrize("how", ["pipe", "SIGTERM", "SIGINT", "SIGHUP", "stop", "kill"])
def test_everything_ends(start: Start, how: str) -> None:
    guard = start(python(ENGINE), grace_s=60)
    below = up(guard)
    assert len(below) == 2
    assert guard.stdin is not None
    if how == "pipe":
        guard.stdin.close()
    elif how == "stop":
        say(guard, "st")
        say(guard, "op 60\n")
    elif how == "kill":
        say(guard, "kill\n")
    else:
        guard.send_signal(signal.Signals[how])
    code = ended(guard)
    assert code == (-signal.SIGKILL if how == "kill" else -signal.SIGTERM)
    assert not [process for process in below if process.is_running()]


def test_the_deaf_are_killed_after_their_grace(start: Start) -> None:
    guard = start(python(f"{STUBBORN} print(flush=True); time.sleep(600)"))
    up(guard)
    say(guard, "stop 0.1\n")
    assert ended(guard) == -signal.SIGKILL


def test_a_later_stop_only_shortens(start: Start) -> None:
    guard = start(python(f"{STUBBORN} print(flush=True); time.sleep(600)"))
    up(guard)
    say(guard, "stop 0.2\nstop 3600\n")
    assert ended(guard) == -signal.SIGKILL


def test_an_engine_that_ends_by_itself(start: Start) -> None:
    assert ended_with_engine_line(start(python("raise SystemExit(7)"))) == 7


def test_orders_that_come_at_once(start: Start) -> None:
    guard = start(python("import time; time.sleep(600)"))
    say(guard, "kill\n")
    assert ended_with_engine_line(guard) == -signal.SIGKILL


def test_a_command_that_is_not_there(start: Start) -> None:
    guard = start(["/no/such/engine"])
    assert ended(guard) == 127
    assert guard.stderr is not None
    assert b"cannot start /no/such/engine" in guard.stderr.read()


def test_the_engine_goes_with_a_killed_guard(start: Start) -> None:
    guard = start(python(ENGINE))
    below = up(guard)
    engine = min(below, key=lambda process: process.create_time())
    guard.kill()
    until(lambda: not engine.is_running(), "the engine's end")
    for process in below:
        if process.is_running():
            process.kill()


def test_it_needs_nothing_but_the_standard_library() -> None:
    source = Path(guard_module.__file__).read_text("utf-8")
    assert "import weft" not in source
    assert "from weft" not in source


def ended_with_engine_line(guard: Guard) -> int:
    assert guard.stdout is not None
    assert guard.stdout.readline().startswith(b"engine ")
    return ended(guard)
