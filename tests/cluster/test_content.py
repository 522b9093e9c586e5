"""Content stores by address: workers open the run's store with variables of their own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.cluster import far_tools
from tests.cluster.fake_workers import FakeBridge, FakeWorkers
from tests.postgres_server import PostgresServer, postgres_server
from tests.s3_server import ACCESS_KEY, SECRET_KEY, S3Server, s3_server
from weft.agents.tools import Toolbox
from weft.cluster.tools import RayTools
from weft.core.errors import PlacementError, StoreError
from weft.errors import SourceError

PASSWORD = "hunter2-for-tests"


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tempfile.tempdir", None)  # it runs as a user who may not read others'
            server = stack.enter_context(postgres_server())
        yield server


@pytest.fixture(params=["s3", "postgres", "folder"])
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "folder":
        return str(tmp_path / "content")
    server = request.getfixturevalue(request.param)
    if isinstance(server, PostgresServer):
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        return server.database()
    server.use(monkeypatch)
    return f"s3://{server.bucket()}/weft"


def run(address: str, bridge: FakeBridge, tool: str, **arguments: Any) -> Any:
    async def main() -> Any:
        box = Toolbox(far_tools.text, far_tools.length)
        tools = RayTools(box, weft.Ray(content=address), bridge.connect)
        for name in box.names:
            tools.place(box.get(name))
        try:
            async with asyncio.timeout(60):
                return await tools.call(tool, arguments)
        finally:
            await tools.aclose()
            await bridge.aclose()

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("tool", "arguments", "result"),
    [
        ("length", {"text": "é" * 200_000}, 200_000),
        ("text", {"length": 200_000}, "x" * 200_000),
    ],
)
def test_code_and_large_values_go_through_the_store(
    address: str, tool: str, arguments: dict[str, Any], result: Any
) -> None:
    bridge = FakeBridge()
    assert run(address, bridge, tool, **arguments) == result
    assert sum(worker.bytes for worker in bridge.workers.started) < 10_000


@pytest.mark.parametrize("address", ["s3", "postgres"], indirect=True)
def test_a_worker_without_a_variable_names_it_and_no_value_travels(address: str) -> None:
    lost = {"AWS_SECRET_ACCESS_KEY", "PGPASSWORD"} & os.environ.keys()
    (name,) = lost
    workers = FakeWorkers()
    workers.lacks = lost
    with pytest.raises(PlacementError, match=f"a worker has no {name}") as raised:
        run(address, FakeBridge(workers), "length", text="x")
    assert not raised.value.retryable
    assert "--env NAME" in str(raised.value.hint)
    assert not workers.started


@pytest.mark.parametrize("address", ["s3", "postgres"], indirect=True)
def test_only_names_are_sent(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []
    bridge = FakeBridge()
    handle = RayTools._made_route

    async def route(tools: RayTools, *given: Any) -> Any:
        made = await handle(tools, *given)
        sent.append(repr(made.header).encode())
        return made

    monkeypatch.setattr(RayTools, "_made_route", route)
    run(address, bridge, "length", text="x")
    (header,) = sent
    assert (b"AWS_ACCESS_KEY_ID" in header) or (b"PGPASSWORD" in header)
    for secret in (ACCESS_KEY, SECRET_KEY, PASSWORD):
        assert secret.encode() not in header


def test_a_worker_that_cannot_reach_the_store_says_so(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.use(monkeypatch)
    with pytest.raises(StoreError, match="no such bucket"):
        run("s3://not-there/weft", FakeBridge(), "length", text="x")


@pytest.mark.parametrize(
    ("content", "message"),
    [("ftp://host/x", "no content store has"), ("s3://Bad/x", "no address of a bucket")],
)
def test_a_wrong_address_is_refused_at_its_line(tmp_path: Path, content: str, message: str) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed (extra `s3`)")
    file = tmp_path / "flow.yaml"
    file.write_text(
        f"name: a\nrun:\n  on: ray\n  content: {content}\nnodes: {{a: {{value: 1}}}}\n"
        'outputs: {a: "{{ a }}"}\n',
        "utf-8",
    )
    with pytest.raises(SourceError, match=message) as raised:
        weft.load(file).check()
    assert (raised.value.line, raised.value.column) == (4, 12)
