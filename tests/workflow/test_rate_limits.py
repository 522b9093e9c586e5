"""Requests and tokens per minute of models and tools, over runs and processes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.errors import BuildError
from weft.testing import FakeClock, FakeModel, MemoryJournal

WINDOW_S = 60.0


def fullest(times: list[float]) -> int:
    """The most arrivals within any 60 seconds."""
    return max(sum(start <= each < start + WINDOW_S for each in times) for start in times)


def asking(clock: FakeClock, many: int, **limit: int) -> tuple[weft.Flow, list[float]]:
    times: list[float] = []

    def answer(_: object) -> str:
        times.append(clock.now())
        return "two words"

    flow = weft.Flow("f", models={"m": FakeModel(answer)}, limits={"m": limit})
    flow.output(r=flow.map(list(range(many)), lambda _: flow.model("m", "hi there", max_tokens=20)))
    return flow, times


@pytest.mark.parametrize("recorded", [False, True])
def test_requests_per_minute_of_a_model(recorded: bool) -> None:
    clock = FakeClock()
    flow, times = asking(clock, 12, requests_per_minute=5, slots=3)
    events: list[Any] = []
    journal = MemoryJournal() if recorded else None
    result = clock.run(flow.run(clock=clock, listeners=[events.append], journal=journal))
    assert (result.status, len(times)) == ("succeeded", 12)
    assert fullest(times) == 5
    assert clock.now() == pytest.approx(124, abs=2)
    logged = [event.text for event in events if type(event).__name__ == "NodeLogged"]
    waits = "waits for the limit of m (requests_per_minute 5): up to "
    assert any(text.startswith(waits) for text in logged)
    assert all(58 < float(text.removeprefix(waits).split()[0]) < 63 for text in logged)


def test_tokens_per_minute_are_reserved_and_settled_by_real_usage() -> None:
    clock = FakeClock()
    flow, times = asking(clock, 20, tokens_per_minute=50)
    assert clock.run(flow.run(clock=clock)).status == "succeeded"
    used = 20 * 4  # two words each way
    assert clock.now() <= 62 * (used // 50 + 1)
    assert all(sum(start <= each < start + WINDOW_S for each in times) * 4 <= 50 for start in times)
    assert fullest(times) >= 6, "only what was used counts, not what was reserved"


def test_runs_of_one_process_share_a_limit_in_order() -> None:
    clock = FakeClock()
    first, times = asking(clock, 4, requests_per_minute=3)
    second, others = asking(clock, 4, requests_per_minute=3)

    async def both() -> None:
        async with asyncio.TaskGroup() as tasks:
            for flow in (first, second):
                tasks.create_task(flow.run(clock=clock))

    clock.run(both())
    assert fullest([*times, *others]) == 3
    assert len(times) + len(others) == 8


def test_a_cancelled_run_gives_its_place_back() -> None:
    clock = FakeClock()
    first, times = asking(clock, 3, requests_per_minute=2)
    second, others = asking(clock, 1, requests_per_minute=2)

    async def main() -> None:
        waiting = asyncio.ensure_future(first.run(clock=clock))
        await clock.sleep(1)
        behind = asyncio.ensure_future(second.run(clock=clock))
        await clock.sleep(1)
        waiting.cancel()
        await asyncio.wait([waiting])
        await behind

    clock.run(main())
    assert len(times) == 2
    assert others[0] < 64, "not behind the place that the cancelled run had waited for"


def test_a_tool_and_a_replay_in_no_time(tmp_path: Path) -> None:
    clock, times = FakeClock(), list[float]()

    @weft.tool(effect="once")
    async def send(i: int) -> int:
        """Send."""
        times.append(clock.now())
        return i

    flow = weft.Flow("f", tools={"send": send}, limits={"send": {"requests_per_minute": 2}})
    flow.output(r=flow.map([1, 2, 3], lambda i: flow.tool("send", i=i)))
    assert clock.run(flow.run(clock=clock, journal=MemoryJournal())).outputs == {"r": [1, 2, 3]}
    assert times == [0, 0, pytest.approx(62, abs=1)]


def test_files_keep_the_short_form(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text(
        "name: f\nmodels: {small: local:smollm2-135m-instruct, big: local:smollm2-135m-instruct}\n"
        "run:\n  limits:\n    small: 4\n"
        "    big: {slots: 2, requests_per_minute: 60, tokens_per_minute: 90000}\n"
        "nodes: {a: {model: small, prompt: x}, b: {model: big, prompt: x}}\n"
        "outputs: {r: '{{ a }}{{ b }}'}\n"
    )
    flow = weft.load(tmp_path / "f.yaml")
    flow.check()
    again = flow.to_yaml()
    assert "small: 4" in again
    assert "requests_per_minute: 60" in again


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"m": {"request_per_minute": 3}}, "unknown key `request_per_minute`"),
        ({"m": {"requests_per_minute": 0}}, "requests_per_minute"),
        ({"n": {"requests_per_minute": 3}}, "no model or tool called `n`"),
        ({"double": {"tokens_per_minute": 3}}, "has no tokens"),
    ],
)
def test_limits_that_cannot_be_kept_are_refused(limits: Any, message: str) -> None:
    @weft.tool
    def double(i: int) -> int:
        """Double."""
        return 2 * i

    flow = weft.Flow("f", models={"m": FakeModel(["x"])}, tools={"double": double})
    flow.output(r=flow.model("m", "hi"), s=flow.tool("double", i=1))
    with pytest.raises(BuildError, match=message):
        flow.run_sync(limits=limits)


class Arrivals(BaseHTTPRequestHandler):
    """Counts requests by the server's clock."""

    def do_GET(self) -> None:
        now_s = time.time()
        self.server.times.append(now_s)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[Any]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), Arrivals)
    made.times = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


WORKER = """
import sys, urllib.request
import weft
from weft.testing import FakeModel

url, journal, deadline, requests, tokens = sys.argv[1:]

def answer(_):
    urllib.request.urlopen(url).close()
    return "two words"

limit = {"requests_per_minute": int(requests)}
if tokens != "0":
    limit["tokens_per_minute"] = int(tokens)
flow = weft.Flow("f", models={"m": FakeModel(answer)}, limits={"m": limit})
flow.output(r=flow.map(list(range(15)), lambda _: flow.model("m", "hi there", max_tokens=2)))
flow.run_sync(deadline=float(deadline), journal=journal)
"""


def arrivals(
    server: Any, journal: Path, processes: int, deadline_s: float, requests: int, tokens: int = 0
) -> list[float]:
    """The arrivals at `server` from so many processes that share a journal."""
    url = f"http://127.0.0.1:{server.server_address[1]}"
    weft.open_journal(journal).close()
    given = [url, str(journal), str(deadline_s), str(requests), str(tokens)]
    command = [sys.executable, "-c", WORKER, *given]
    running = [subprocess.Popen(command) for _ in range(processes)]
    assert [process.wait() for process in running] == [0] * processes
    return sorted(server.times)


def test_two_processes_share_a_limit(server: Any, tmp_path: Path) -> None:
    times = arrivals(server, tmp_path / "j.sqlite", 2, 3.0, requests=7)
    assert len(times) == 7


@pytest.mark.slow
def test_eight_processes_share_limits_of_requests_and_tokens(server: Any, tmp_path: Path) -> None:
    times = arrivals(server, tmp_path / "j.sqlite", 8, 140.0, requests=20, tokens=1_000)
    assert fullest(times) == 20
    assert len(times) == 60
    assert all(later >= earlier for earlier, later in pairwise(times))
    del server.times[:]
    times = arrivals(server, tmp_path / "k.sqlite", 8, 10.0, requests=100, tokens=84)
    assert len(times) <= 84 // 4, "two words each way"
