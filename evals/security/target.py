"""Servers that are attacked: each a process group of its own, with the watcher inside it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from evals.security import watch
from evals.security.attacks import ASKING, LOCAL, VICTIM, Attack

_START_S = 120.0
_PATIENCE_S = 60.0
GRACE_S = 2.0
"""How long the servers have to end, by their own options."""
_ASK = """
import os, sys, weft
from weft.core.events import HumanAsked
from weft.workflow.runtime.journals import open_journal
def heard(event):
    if isinstance(event, HumanAsked):
        import threading
        threading.Timer(0.5, os._exit, (0,)).start()
journal = open_journal(sys.argv[2])
weft.load(sys.argv[1]).run_sync(journal=journal, durability="sync", listeners=(heard,))
"""


@dataclass(slots=True)
class Target:
    """A running server."""

    process: subprocess.Popen[str]
    port: int
    headers: dict[str, str]
    journal: Path | None = None

    def post(self, attack: Attack, body: bytes) -> int:
        """The status of the answer; 0 when there is none. Blocks."""
        headers = {"content-type": "application/json", **self.headers}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{attack.path}", body, headers
        )
        try:
            with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:
                answer.read()
                return int(answer.status)
        except urllib.error.HTTPError as error:
            error.read()
            return error.code
        except OSError:
            return 0

    @contextmanager
    def watched(self, latencies_ms: list[float]) -> Iterator[None]:
        """Adds the latencies of `/healthz` during the context, asked within the process group."""
        watcher = subprocess.Popen(
            [sys.executable, watch.__file__, str(self.port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=os.getpgid(self.process.pid),
        )
        assert watcher.stdout is not None
        watcher.stdout.readline()  # the first one also measures its start
        try:
            yield
        finally:
            out, _ = watcher.communicate()
            latencies_ms += [float(line) for line in out.splitlines()]

    def terminate(self) -> float:
        """Seconds from SIGTERM to the end; infinite when it had to be killed."""
        began = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            return float("inf")
        return time.perf_counter() - began


@contextmanager
def target(attack: Attack, folder: Path, upstream_url: str) -> Iterator[Target]:
    """The server that `attack` is for; it is gone afterwards."""
    journal = folder / "runs.sqlite"
    command = _command(attack, folder, upstream_url, journal)
    process = subprocess.Popen(
        [sys.executable, "-m", "weft", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
        env={**os.environ, "BROWSER": "true"},
    )
    try:
        port, headers = _address(process)
        yield Target(process, port, headers, journal)
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _command(attack: Attack, folder: Path, upstream_url: str, journal: Path) -> list[str]:
    file = folder / "victim.yaml"
    file.write_text(LOCAL if attack.local else VICTIM.replace("UPSTREAM", upstream_url))
    if attack.kind == "mcp":
        return ["mcp", str(file), "--http", "--port", "0"]
    if attack.kind == "gateway":
        model = "tiny" if attack.local else "echo"
        drain = ["--drain", f"{GRACE_S:g}s"]
        return ["gateway", str(file), "--port", "0", "--model", model, *drain]
    file.write_text(ASKING)
    asking = [sys.executable, "-c", _ASK, str(file), str(journal)]
    subprocess.run(asking, check=True, timeout=_PATIENCE_S, stdout=subprocess.DEVNULL)
    return ["ui", "--journal", str(journal), "--no-open"]


def _address(process: subprocess.Popen[str]) -> tuple[int, dict[str, str]]:
    assert process.stdout is not None
    deadline = time.monotonic() + _START_S
    said = []
    while time.monotonic() < deadline and (line := process.stdout.readline()):
        said.append(line)
        if found := re.search(r"http://127\.0\.0\.1:(\d+)\S*?(?:#key=(\S+)|/mcp|\s)", line):
            key = {"authorization": f"Bearer {found[2]}"} if found[2] else {}
            media = {"accept": "application/json, text/event-stream"}
            return int(found[1]), {**key, **media}
    raise RuntimeError(f"the server did not start: {''.join(said)}")
