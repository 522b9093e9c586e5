"""Calls of two processes on one server that sorts them by `priority`, as vLLM does.

Each process knows its own programs only. The server decodes one call at a time, and always has one
call of every program to choose from.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evals.scripted_server import MODEL, ScriptedServer

FLOW = """
name: chain
models:
  m:
    use: openai
    model: {model}
    base_url: "{url}"
    options: {{priority: true, fleet: {{patience: {patience}}}}}
nodes:
{nodes}
outputs: {{last: "{{{{ {last} }}}}"}}
"""
PATIENCE_S = 60.0


class PriorityServer(ScriptedServer):
    """Answers the waiting call with the smallest `priority` once `programs` calls wait."""

    def __init__(self, programs: int) -> None:
        super().__init__(lambda _: "ok")
        self.order: list[str] = []
        self.priorities: dict[str, int] = {}
        self._programs = programs
        self._changed = threading.Condition()
        self._waiting: list[tuple[int, str]] = []

    def events(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        name = str(body["messages"][-1]["content"])
        call = int(body["priority"]), name
        with self._changed:
            self.priorities[name] = call[0]
            self._waiting.append(call)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._is_next(call), PATIENCE_S)
            self._waiting.remove(call)
            self.order.append(name)
            self._programs -= name.endswith("last")
            self._changed.notify_all()
        return super().events(body)

    def seen(self, call: str) -> None:
        """Wait until `call` has arrived."""
        with self._changed:
            assert self._changed.wait_for(lambda: call in self.priorities, PATIENCE_S)

    def _is_next(self, call: tuple[int, str]) -> bool:
        return len(self._waiting) >= self._programs and call == min(self._waiting)


@contextmanager
def process(
    server: PriorityServer, folder: Path, name: str, calls: int, patience: float
) -> Iterator[None]:
    """`weft run` of a chain of calls, as a process."""
    names = [f"{name}{number}" for number in range(1, calls)] + [f"{name}last"]
    nodes = [
        f'  {each}: {{model: m, prompt: "{each}", after: [{before}]}}'
        for before, each in zip(["", *names], names, strict=False)
    ]
    options = {"url": server.base_url, "patience": patience, "last": names[-1]}
    text = FLOW.format(model=MODEL, nodes="\n".join(nodes), **options)
    file = folder / f"{name}.yaml"
    file.write_text(text, "utf-8")
    command = [sys.executable, "-m", "weft", "run", str(file), "--durability", "none"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as running:
        try:
            yield
            said, _ = running.communicate(timeout=PATIENCE_S)
            assert running.returncode == 0, said.decode()
        finally:
            running.kill()


def served(folder: Path, patience: float) -> tuple[PriorityServer, list[float]]:
    """A chain of three calls, and a single call of another process that comes later."""
    moments = [time.time()]
    server = PriorityServer(2)
    with server, process(server, folder, "long", 3, patience):
        server.seen("long1")
        moments.append(time.time())
        with process(server, folder, "short", 1, patience):
            server.seen("shortlast")
            moments.append(time.time())
    return server, moments


def test_the_shorter_program_of_a_later_process_goes_first(tmp_path: Path) -> None:
    server, _ = served(tmp_path, patience=1000)
    assert server.order == ["shortlast", "long1", "long2", "longlast"]


def test_ranks_are_on_the_wall_clock_and_a_program_keeps_its_own(tmp_path: Path) -> None:
    """Without regard to length, the program that began first goes first, to its end."""
    server, moments = served(tmp_path, patience=0)
    assert server.order == ["long1", "long2", "longlast", "shortlast"]
    began, second, third = (moment * 1000 for moment in moments)
    assert began <= server.priorities["long1"] <= second + 1
    assert second - 1 <= server.priorities["shortlast"] <= third + 1
    assert server.priorities["longlast"] == server.priorities["long1"]
