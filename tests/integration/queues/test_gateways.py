"""Two gateway processes on one journal behind a plain TCP balancer; one of them is killed."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.integration.queues.workers import WEFT
from tests.postgres_server import PostgresServer, postgres_server
from tests.tcp_balancer import tcp_balancer
from weft.core.ids import RunId
from weft.workflow.queue.submission import SubmittedRun

WORDS = 20
MODELS = f"""
import os
from weft.testing import FakeModel, Reply

def make(model: str):
    per_token_s = float(os.environ["PER_TOKEN_S"])
    return FakeModel(lambda request: Reply("word " * {WORDS}, per_token_s=per_token_s), model=model)
"""
CHAT = """
name: chat
inputs: {question: string}
models: {m: {use: "./models.py:make", model: m}}
nodes: {said: {model: m, prompt: "{{ question }}"}}
outputs: {answer: "{{ said }}"}
"""
ASKS = """
name: asks
inputs: {n: {type: integer, default: 1}}
nodes:
  sure: {ask: "Sure?", schema: boolean}
  then: {value: "{{ [sure, n * 2] }}"}
outputs: {answer: "{{ then }}"}
"""
ANSWER = "word " * WORDS


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@dataclass
class GatewayProcess:
    process: subprocess.Popen[str]
    port: int


@contextmanager
def gateway(folder: Path, journal: str, per_token_s: float) -> Iterator[GatewayProcess]:
    command = [*WEFT, "gateway", "chat.yaml", "asks.yaml", "--port", "0", "--journal", journal]
    command += ["--submissions", "--answers", "--worker", "600", "--durability", "async"]
    command += ["--lease", "3s", "--max-concurrent", "1000", "--max-waiting", "1000", "--quiet"]
    command += ["--timeout", "20m"]
    with (folder / "gateways.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "PER_TOKEN_S": str(per_token_s)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("listening on"), (folder / "gateways.log").read_text()
        yield GatewayProcess(process, int(first.rpartition(":")[2].partition("/")[0]))
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@dataclass
class Stream:
    """A chat's stream: the run's id, its text, and whether it ended whole."""

    run: str = ""
    text: str = ""
    whole: bool = False


async def streamed(client: httpx2.AsyncClient, number: int, begun: asyncio.Semaphore) -> Stream:
    stream = Stream()
    try:
        await read_stream(client, number, stream, begun)
    finally:
        if not stream.text:
            begun.release()  # the test must not wait for a stream that failed
    return stream


async def read_stream(
    client: httpx2.AsyncClient, number: int, stream: Stream, begun: asyncio.Semaphore
) -> None:
    body = {
        "model": "chat",
        "stream": True,
        "messages": [{"role": "user", "content": f"question {number}"}],
    }
    with suppress(httpx2.HTTPError):
        async with client.stream("POST", "/v1/chat/completions", json=body) as response:
            assert response.status_code == 200
            stream.run = response.headers["x-weft-run"]
            async for line in response.aiter_lines():
                if line == "data: [DONE]":
                    stream.whole = True
                elif line.startswith("data: "):
                    choices = json.loads(line.removeprefix("data: ")).get("choices") or [{}]
                    first = not stream.text
                    stream.text += choices[0].get("delta", {}).get("content") or ""
                    if first and stream.text:
                        begun.release()


async def survive(server: PostgresServer, folder: Path, streams: int, per_token_s: float) -> None:
    journal = server.database()
    for name, text in (("models.py", MODELS), ("chat.yaml", CHAT), ("asks.yaml", ASKS)):
        (folder / name).write_text(text)
    with ExitStack() as stack:
        both = [stack.enter_context(gateway(folder, journal, per_token_s)) for _ in range(2)]
        async with tcp_balancer(*(one.port for one in both)) as port:
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
            base, timeout = f"http://127.0.0.1:{port}", httpx2.Timeout(600.0)
            async with httpx2.AsyncClient(base_url=base, limits=limits, timeout=timeout) as client:
                begun = asyncio.Semaphore(0)
                tasks = [
                    asyncio.create_task(streamed(client, number, begun))
                    for number in range(streams)
                ]
                for _ in range(streams):
                    await begun.acquire()  # every stream has begun before one gateway dies
                assert [await probe(one, "/readyz") for one in both] == [("ready", 200)] * 2
                both[0].process.kill()
                await asyncio.wait(tasks)
                ended = [task.result() for task in tasks]
                assert await probe(both[1]) == ("ok", 200)
                assert await probe(both[1], "/readyz") == ("ready", 200)
                await check_runs(client, ended, journal)


async def probe(one: GatewayProcess, path: str = "/healthz") -> tuple[str, int]:
    async with httpx2.AsyncClient() as client:
        response = await client.get(f"http://127.0.0.1:{one.port}{path}")
        return response.json()["status"], response.status_code


async def check_runs(client: httpx2.AsyncClient, ended: list[Stream], journal: str) -> None:
    whole = [stream for stream in ended if stream.whole]
    broken = [stream for stream in ended if not stream.whole]
    assert {stream.text for stream in whole} == {ANSWER}
    assert len(whole) >= len(ended) // 2
    assert broken, "a gateway was killed under its streams"
    for stream in broken:
        result = await SubmittedRun[Any](RunId(stream.run), journal).result()
        assert result.outputs == {"answer": ANSWER}
        seen = (await client.get(f"/v1/runs/{stream.run}")).json()
        assert (seen["status"], seen["outputs"]) == ("succeeded", {"answer": ANSWER})
    print(f"{len(ended)} streams: {len(whole)} ended whole, {len(broken)} continued as runs")


def test_fifty_streams_and_a_killed_gateway(server: PostgresServer, tmp_path: Path) -> None:
    asyncio.run(survive(server, tmp_path, 50, 0.25))


@pytest.mark.slow
def test_a_thousand_streams_and_a_killed_gateway(server: PostgresServer, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
    try:
        asyncio.run(survive(server, tmp_path, 1_000, 3.0))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_any_gateway_answers_for_any_run(server: PostgresServer, tmp_path: Path) -> None:
    async def main() -> None:
        for name, text in (("models.py", MODELS), ("chat.yaml", CHAT), ("asks.yaml", ASKS)):
            (tmp_path / name).write_text(text)
        journal = server.database()
        with ExitStack() as stack:
            one, two = (stack.enter_context(gateway(tmp_path, journal, 0.0)) for _ in range(2))
            here, there = (
                httpx2.AsyncClient(base_url=f"http://127.0.0.1:{each.port}", timeout=60.0)
                for each in (one, two)
            )
            order = {"flow": "asks", "inputs": {"n": 4}}
            key = {"idempotency-key": "order-17"}
            answers = [
                await each.post("/v1/runs", json=order, headers=key) for each in (here, there)
            ]
            assert [answer.status_code for answer in answers] == [202, 202]
            assert {answer.headers["location"] for answer in answers} == {"/v1/runs/order-17"}
            other = await there.post("/v1/runs", json={**order, "inputs": {"n": 5}}, headers=key)
            assert (other.status_code, other.json()["error"]["code"]) == (409, "run_exists")
            run = SubmittedRun[Any](RunId("order-17"), journal)
            while (await here.get("/v1/runs/order-17")).json()["status"] != "asking":
                pass
            found = (await there.get("/v1/runs/order-17/questions")).json()["data"]
            assert [question["node"] for question in found] == ["sure"]
            said = {"node": "sure", "value": True}
            assert (await here.post("/v1/runs/order-17/answers", json=said)).status_code == 202
            assert (await run.result())["answer"] == [True, 8]
            seen = (await there.get("/v1/runs/order-17")).json()
            assert (seen["status"], seen["outputs"]) == ("succeeded", {"answer": [True, 8]})
            wrong: list[tuple[Any, int]] = [
                ({"flow": "nothing"}, 404),
                ({"flow": "asks", "inputs": {"m": 1}}, 400),
                ({"flow": "asks", "colour": "red"}, 400),
                ({"flow": "asks", "at": "tomorrow"}, 400),
                ({"flow": "asks", "key": "../x"}, 400),
                ([], 400),
            ]
            for body, status in wrong:
                assert (await here.post("/v1/runs", json=body)).status_code == status, body
            assert (await here.get("/v1/runs/nothing")).status_code == 404
            late = {**order, "key": "late", "at": "2999-01-01T00:00+00:00"}
            assert (await here.post("/v1/runs", json=late)).status_code == 202
            done = await there.post("/v1/runs/late/cancel")
            assert (done.status_code, done.json()["status"]) == (200, "cancelled")
            assert (await here.get("/v1/runs/late")).json()["status"] == "cancelled"
            await here.aclose()
            await there.aclose()
            await readiness(one, server)

    asyncio.run(main())


async def readiness(one: GatewayProcess, server: PostgresServer) -> None:
    """It is alive throughout, and ready while its journal can be reached."""
    server.stop()
    assert await probe(one, "/readyz") == ("unavailable", 503)
    assert await probe(one) == ("ok", 200)
    server.start()
    while await probe(one, "/readyz") != ("ready", 200):
        pass
