"""Done-when 6 of the issue: no hostile program harms anything, and each has a typed end."""

from __future__ import annotations

import asyncio
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.reasoning.code.hostile import PROGRAMS
from tests.reasoning.code.sandbox_support import Marked, needs_protection
from weft.reasoning.code.sandbox.request import SandboxLimits
from weft.reasoning.code.sandbox.sandbox import CodeSandbox

MIB = 1024 * 1024
LIMITS = SandboxLimits(
    wall_s=120.0,
    cpu_s=10,
    memory_bytes=192 * MIB,
    file_bytes=8 * MIB,
    disk_bytes=24 * MIB,
    output_bytes=256 * 1024,
)
SHORT = replace(LIMITS, wall_s=2.0, cpu_s=1)
pytestmark = needs_protection


@dataclass
class Surroundings:
    """What a program could harm: a secret, a server, a process, and the whole system's files."""

    secret: Path
    port: int
    listening: socket.socket
    unix: Path
    bystander: int

    def about(self, source: str) -> str:
        for word, value in {
            "@SECRET@": self.secret,
            "@PORT@": self.port,
            "@SOCKET@": self.unix,
            "@PID@": self.bystander,
        }.items():
            source = source.replace(word, str(value))
        return source


@pytest.fixture(scope="module")
def around(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surroundings]:
    place = tmp_path_factory.mktemp("around")
    secret = place / "secret"
    secret.write_text("HARM: the secret")
    unix = place / "socket"
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.socket(socket.AF_UNIX) as local,
        subprocess.Popen(command) as bystander,
    ):
        local.bind(str(unix))
        local.listen()
        listening.setblocking(False)
        port = listening.getsockname()[1]
        yield Surroundings(secret, port, listening, unix, bystander.pid)
        assert bystander.poll() is None
        bystander.kill()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the corpus names calls by number")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_hostile_program_harms_nothing_and_its_end_has_a_type(
    name: str, around: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = PROGRAMS[name]
    monkeypatch.setenv("WEFT_SECRET", "HARM")
    before = around.secret.stat()
    marked = Marked(CodeSandbox(SHORT if "timeout" in program.ends else LIMITS))
    ran = asyncio.run(marked.run(around.about(program.source)))
    assert ran.status in program.ends, ran
    assert program.says in ran.stdout
    assert "HARM" not in ran.stdout, ran
    assert len(ran.stdout.encode("utf-8", "replace")) <= 3 * LIMITS.output_bytes
    assert ran.ok == (ran.exit_code == 0)
    assert around.secret.stat() == before
    assert Path(sys.executable).stat().st_mode & 0o777 != 0o777
    with pytest.raises(BlockingIOError):
        around.listening.accept()
    assert not marked.processes()


def test_there_are_thirty_of_them() -> None:
    assert len(PROGRAMS) >= 30
