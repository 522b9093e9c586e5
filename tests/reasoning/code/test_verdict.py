"""What the keeper says, as an outcome; and what it is told, as values that survive the way."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from tests.reasoning.code.sandbox_support import needs_protection
from weft.reasoning.code.sandbox.jail.enclosure import memory_below, why_unwatched
from weft.reasoning.code.sandbox.jail.seccomp import call_numbers, why_no_filter
from weft.reasoning.code.sandbox.keeper_process import KeeperReport
from weft.reasoning.code.sandbox.outcome import verdict
from weft.reasoning.code.sandbox.request import SandboxLimits, SandboxRequest

LIMITS = SandboxLimits(wall_s=2.5, cpu_s=3, memory_bytes=1_000_000, output_bytes=5_000)


@pytest.mark.parametrize(
    ("said", "complained", "status", "why"),
    [
        ({"code": 0}, "", "finished", ""),
        ({"code": 0}, "MemoryError", "finished", ""),
        ({"code": 3}, "", "failed", "it ended with exit code 3"),
        ({"code": 1}, "a\nKeyError: 1\n\n", "failed", "KeyError: 1"),
        ({"code": 1}, "a\nMemoryError", "memory", "it wanted more than 1,000,000 bytes of memory"),
        ({"code": -9, "cpu_s": 0.1}, "", "killed", "it ended by SIGKILL"),
        ({"code": -9, "cpu_s": 4.0}, "", "timeout", "more than its 3 s of processor time"),
        ({"code": -signal.SIGXCPU}, "", "timeout", "more than its 3 s of processor time"),
        ({"code": -signal.SIGXFSZ}, "", "file_size", "wrote a file of more than"),
        ({"code": -signal.SIGSYS}, "", "denied", "system call that no program may make"),
        ({"code": -64}, "", "killed", "it ended by "),
        ({"cause": "time"}, "", "timeout", "longer than 2.5 s"),
        ({"cause": "memory"}, "", "memory", "used more than 1,000,000 bytes"),
        ({"cause": "memory", "code": -9}, "", "memory", "used more than 1,000,000 bytes"),
        ({"cause": "stopped"}, "", "killed", "from outside"),
    ],
)
def test_what_the_keeper_says(said: dict[str, Any], complained: str, status: str, why: str) -> None:
    ran = verdict(
        KeeperReport(said, b"\xff", complained.encode(), flooded=False, late=False), LIMITS
    )
    assert (ran.status, ran.stdout, ran.stderr) == (status, "\ufffd", complained)
    assert why in ran.why
    assert ran.ok == (status == "finished")


def test_a_flood_is_told_whatever_ended_it_and_a_late_keeper_is_too_long() -> None:
    flooded = verdict(
        KeeperReport({"cause": "stopped"}, b"x", b"", flooded=True, late=False), LIMITS
    )
    assert (flooded.status, flooded.why) == ("output", "it printed more than 5,000 bytes")
    assert verdict(KeeperReport({}, b"", b"", flooded=False, late=True), LIMITS).status == "timeout"


@examples(100)
@given(st.lists(st.text()), st.binary(), st.dictionaries(st.text(), st.binary()), st.booleans())
def test_an_order_survives_its_way(
    command: list[str], stdin: bytes, files: dict[str, bytes], probe: bool
) -> None:
    order = SandboxRequest(tuple(command), stdin, files, {"A": "é"}, ("/lib",), LIMITS, ("files",))
    order = replace(order, probe=probe)
    assert SandboxRequest.from_json(order.as_json()) == order


def test_an_unknown_machine_has_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "sparc64")
    assert why_no_filter() == "the system calls of sparc64 are not known"
    assert call_numbers("sparc64") == {}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_calls_have_numbers_of_their_own(machine: str) -> None:
    numbers = call_numbers(machine)
    assert len(numbers) == len(set(numbers.values())) > 45
    assert {"socket", "clone", "clone3", "ptrace", "mount", "unshare"} <= numbers.keys()


@needs_protection
def test_memory_of_all_processes_below_one_is_counted() -> None:
    assert why_unwatched() == ""
    source = "import sys, time; held = bytearray(30 << 20); print('x', flush=True); time.sleep(60)"
    before = memory_below(os.getpid())
    with subprocess.Popen((sys.executable, "-c", source), stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        used = memory_below(os.getpid()) - before
        child.kill()
    assert 30 << 20 < used < 200 << 20
    assert memory_below(2**22 + 1) == 0
