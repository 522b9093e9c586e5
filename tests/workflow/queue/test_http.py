"""Queued runs over HTTP: one gateway on a SQLite journal."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import weft

httpx2 = pytest.importorskip("httpx2", reason="httpx2 is not installed (extra `serve`)")

TEXT = """
name: double
inputs: {n: integer}
nodes: {twice: {value: "{{ n * 2 }}"}}
outputs: {twice: "{{ twice }}"}
"""


def gateway(path: Path, body: Callable[[Any, weft.Flow], Awaitable[None]], **options: Any) -> None:
    from weft.workflow.apps.gateway import GatewayOptions, WorkflowGateway

    flow = weft.loads(TEXT)

    async def main() -> None:
        with closing(weft.open_journal(path)) as journal:
            given = {"journal": journal, "submissions": True, **options}
            served = WorkflowGateway([flow], GatewayOptions(port=0), **given)
            served.bind()
            ready = asyncio.Event()
            serving = asyncio.create_task(served.serve(ready.set))
            await ready.wait()
            async with httpx2.AsyncClient(base_url=served.address, timeout=60) as client:
                await body(client, flow)
            served.drain()
            await serving

    asyncio.run(main())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


def test_times_have_the_forms_of_the_command_line(path: Path) -> None:
    async def body(client: Any, flow: weft.Flow) -> None:
        async def submit(key: str, at: str) -> Any:
            order = {"flow": "double", "inputs": {"n": 1}, "key": key, "at": at}
            return await client.post("/v1/runs", json=order)

        began_s = datetime.now(UTC).timestamp()
        assert (await submit("delay", "10m")).status_code == 202
        assert (await submit("time", "2999-01-01T00:00+01:00")).status_code == 202
        for number, text in enumerate(("10m", "2999-01-01T00:00+01:00")):
            flow.submit({"n": 1}, key=f"python-{number}", at=text, journal=path)
        due = {run: weft.SubmittedRun(run, path).entry().terms.due_s for run in KEYS}
        late_s = datetime(2998, 12, 31, 23, tzinfo=UTC).timestamp()
        assert due["time"] == due["python-1"] == late_s
        for run in ("delay", "python-0"):
            assert began_s + 600 <= due[run] <= datetime.now(UTC).timestamp() + 600
        for wrong in ("soon", "2020", "2026-01-05T09:00", "99999999999d", "-1s", "", "9" * 5000):
            refused = await submit("wrong", wrong)
            assert refused.status_code == 400, wrong
            assert "2026-01-05T09:00+01:00" in refused.json()["error"]["message"]

    gateway(path, body)


KEYS = ("delay", "time", "python-0", "python-1")


def test_cancelling_says_how_the_run_has_ended(path: Path) -> None:
    async def body(client: Any, flow: weft.Flow) -> None:
        done = flow.submit({"n": 1}, key="done", journal=path)
        waiting = {"flow": "double", "inputs": {"n": 1}, "key": "waits", "at": "1h"}
        await client.post("/v1/runs", json=waiting)
        for _ in range(2):  # repeated, it is the same
            cancelled = await client.post("/v1/runs/waits/cancel")
            assert cancelled.status_code == 200
            assert cancelled.json() == {"run": "waits", "ended": True, "status": "cancelled"}
        assert (await done.result()).ok
        refused = await client.post("/v1/runs/done/cancel")
        seen = refused.json()
        assert (refused.status_code, seen["status"], seen["ended"]) == (409, "succeeded", True)
        assert seen["error"]["code"] == "run_ended"
        assert (await client.post("/v1/runs/none/cancel")).status_code == 404

    gateway(path, body, worker=1)


def test_a_running_run_is_cancelled_soon(path: Path) -> None:
    from weft.core.ports.queue import queue_of

    async def body(client: Any, flow: weft.Flow) -> None:
        submitted = flow.submit({"n": 1}, key="runs", journal=path)
        version = submitted.entry().terms.version
        with closing(weft.open_journal(path)) as elsewhere:
            taken = queue_of(elsewhere).take(["default"], [version])
            assert taken is not None
            soon = await client.post("/v1/runs/runs/cancel")
            assert (soon.status_code, soon.json()["ended"]) == (202, False)
            assert soon.json()["status"] == "running"
            taken.claim.release()

    gateway(path, body)


def test_live_workers_are_listed(path: Path) -> None:
    async def none(client: Any, flow: weft.Flow) -> None:
        assert (await client.get("/v1/workers")).json() == {"object": "list", "data": []}

    async def one(client: Any, flow: weft.Flow) -> None:
        version = flow.submit({"n": 1}, journal=path).entry().terms.version
        while not (found := (await client.get("/v1/workers")).json()["data"]):
            pass
        (worker,) = found
        assert worker["versions"] == [f"double@{version}"]
        assert (worker["pid"], worker["concurrency"], worker["draining"]) == (os.getpid(), 2, False)
        assert set(worker) == FIELDS

    gateway(path, none)
    gateway(path, one, worker=2)
    gateway(path, none)  # it has left


FIELDS = {
    *("worker", "host", "pid", "versions", "queues", "concurrency", "running", "draining"),
    *("since", "heartbeat"),
}
