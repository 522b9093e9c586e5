"""Runs behind `weft gateway` and `weft mcp`, recorded: found, repeated, compared, gone on with."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from openai import APIStatusError, OpenAI

from tests.integration.mcp_watch import Trace
from tests.integration.test_gateway import (
    HELLO,
    PATIENCE_S,
    Served,
    client,
    counter,
    gateway,
    until,
    written,
)
from tests.integration.test_mcp_server import command, environment
from tests.integration.test_mcp_server import written as tools_written
from weft.workflow.apps.mcp_server import RUN_KEY


def weft(folder: Path, *words: str) -> tuple[int, str]:
    """A command in a process of its own: its exit status, and what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "weft", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def listed(folder: Path) -> dict[str, str]:
    """How each run of the journal stands."""
    code, said = weft(folder, "runs", "--json", "--journal", "runs.sqlite")
    assert code == 0, said
    return {run["run"]: run["standing"] for run in json.loads(said)}


async def asked(served: Served, text: str, stream: bool) -> str:
    """The run behind an answer to `text`."""
    async with client(served) as api:
        raw = await api.chat.completions.with_raw_response.create(
            model="echo", messages=[{"role": "user", "content": text}], stream=stream
        )
        return raw.headers["x-weft-run"]


def test_runs_behind_the_gateway_are_kept_where_it_says(tmp_path: Path) -> None:
    folder = written(tmp_path)

    async def many(served: Served) -> list[str]:
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(asked(served, text, stream=stream))
                for text in ("tea", "salt")
                for stream in (False, True)
            ]
        return [task.result() for task in tasks]

    with gateway(folder, "echo.yaml", "failing.yaml", "--journal", "runs.sqlite") as served:
        runs = asyncio.run(many(served))
        with (
            OpenAI(base_url=served.url, api_key="none", max_retries=0, timeout=PATIENCE_S) as api,
            pytest.raises(APIStatusError) as raised,
        ):
            api.chat.completions.create(model="failing", messages=HELLO)
        failed = raised.value.response.headers["x-weft-run"]
        assert listed(folder) == {**dict.fromkeys(runs, "succeeded"), failed: "failed"}
        code, said = served.end()
    assert code == 0
    assert "runs are recorded" in said
    assert failed in said  # the line of the request
    assert len(set(runs)) == 4
    at = ("--journal", "runs.sqlite")
    for run in runs:
        code, said = weft(folder, "replay", run, *at)
        assert (code, "identical" in said) == (0, True), said
    code, said = weft(folder, "diff", runs[0], runs[2], *at)
    assert "tea" in said, said


def test_a_run_of_a_gateway_that_was_killed_is_gone_on_with(tmp_path: Path) -> None:
    folder = written(tmp_path)

    async def killed(served: Served) -> None:
        async with client(served) as api:
            task = asyncio.create_task(api.chat.completions.create(model="late", messages=HELLO))
            await until(lambda: counter(served, "weft_gateway_running") == 1)
            await until(lambda: bool(listed(folder)))
            served.process.send_signal(signal.SIGKILL)
            await asyncio.wait([task])
            assert task.exception() is not None

    with gateway(folder, "late.yaml", "--journal", "runs.sqlite") as served:
        asyncio.run(killed(served))
        served.process.wait(PATIENCE_S)
    ((run, standing),) = listed(folder).items()
    assert standing == "interrupted"
    (folder / "go").touch()
    code, said = weft(folder, "resume", run, "--journal", "runs.sqlite", "--quiet")
    assert (code, "late but whole" in said) == (0, True), said


def test_a_server_keeps_nothing_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_JOURNAL", str(tmp_path / "own.sqlite"))
    folder = written(tmp_path)
    with gateway(folder, "echo.yaml") as served:
        with OpenAI(base_url=served.url, api_key="none") as api:
            raw = api.chat.completions.with_raw_response.create(model="echo", messages=HELLO)
            assert "x-weft-run" not in raw.headers
        assert "recorded" not in served.end()[1]
    assert not list(tmp_path.glob("*.sqlite*"))


def test_runs_behind_an_mcp_server_are_kept_where_it_says(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trace = tools_written(tmp_path)

    async def main(words: tuple[str, ...]) -> list[str | None]:
        program, *rest = command(trace)
        place = {**environment(trace), "WEFT_JOURNAL": str(tmp_path / "runs.sqlite")}
        server = StdioServerParameters(command=program, args=[*rest, *words], env=place)
        async with asyncio.timeout(PATIENCE_S), Client(server, cache=None) as peer:
            names = ("you", "me", "them")
            async with asyncio.TaskGroup() as group:
                calls = [
                    group.create_task(peer.call_tool("greeting", {"name": name})) for name in names
                ]
            results = [call.result() for call in calls]
            texts = [(result.structured_content or {})["text"] for result in results]
            assert texts == [f"hello {name}" for name in names]
            failed = await peer.call_tool("failing", {})
            wrong = await peer.call_tool("greeting", {})
            assert failed.is_error
            assert wrong.is_error
            return [(result.meta or {}).get(RUN_KEY) for result in (*results, failed, wrong)]

    assert asyncio.run(main(())) == [None] * 5
    assert not (tmp_path / "runs.sqlite").exists()
    *fine, failed, wrong = asyncio.run(main(("--durability", "async")))
    assert wrong is None  # there was no run
    assert failed is not None
    assert not caplog.records  # the client understood every line
    assert listed(tmp_path) == {**dict.fromkeys(fine, "succeeded"), failed: "failed"}


def test_what_is_no_durability_is_wrong_usage(tmp_path: Path) -> None:
    trace: Trace = tools_written(tmp_path)
    file = str(trace.path.parent / "greeting.yaml")
    for server in ("gateway", "mcp"):
        code, said = weft(tmp_path, server, file, "--durability", "always")
        assert (code, "sync, async, exit, none" in said) == (2, True), said
