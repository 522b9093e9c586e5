"""Canary secrets in environment, errors, prompts, headers and answers: no exit may show them.

Each command runs in a process of its own, with secrets in its environment that tools raise, models
write, and prompts and servers repeat. What it leaves behind is searched for them in all spellings.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx2
import pytest
from prometheus_client import generate_latest

import weft
from tests.cli.terminal import Terminal
from weft.core.redaction import Redactor
from weft.serving.telemetry.metrics import RunMetrics
from weft.workflow.apps.gateway import GatewayOptions, WorkflowGateway
from weft.workflow.apps.mcp_server import WorkflowMcpServer
from weft.workflow.apps.ui import RunsPage
from weft.workflow.runtime.journals import open_journal

CANARIES = {
    "CANARY_API_KEY": 'canary-7f3a "quoted" tail',  # found by its name
    "UPSTREAM": "canary/9c1d+header==",  # named by the workflow
}
SPELLED = Redactor(CANARIES).secrets
WEFT = (sys.executable, "-c", "from weft.cli.entry import run; run()")
PATIENCE_S = 60
PROGRAM = '''
import os

import weft
from weft.testing import FakeModel, Reply

KEY, HEADER = os.environ["CANARY_API_KEY"], os.environ["UPSTREAM"]

@weft.tool
def raises(text: str) -> str:
    """Raise what nobody should read."""
    raise ValueError(f"401 for Bearer {HEADER} with {KEY} at {text}")

@weft.tool
def returns(text: str, context: weft.ToolContext) -> dict:
    """Return it, log it and print it not."""
    context.log(f"asking with {KEY}")
    return {"headers": {"authorization": f"Bearer {HEADER}"}, KEY: text}

def is_real(found: dict) -> str:
    return "real" if found["headers"]["authorization"] == f"Bearer {HEADER}" else "marks"

def make(model: str):
    if model == "breaks":
        return FakeModel(lambda request: Reply(f"{KEY} and", break_after_tokens=2), model=model)
    return FakeModel(lambda request: f"the key is {KEY}, said {request.messages[-1].content}")
'''
FLOW = """
name: leak
inputs: {question: {type: string}}
models:
  m: {use: "./program.py:make", model: says}
  far: {use: openai, model: far, base_url: "URL", api_key_env: UPSTREAM}
nodes:
  found: {tool: "./program.py:returns", with: {text: "{{ question }}"}}
  real: {call: "./program.py:is_real", with: {found: "{{ found }}"}}
  said: {model: m, prompt: "{{ question }} and {{ found }} and canary-7f3a \\"quoted\\" tail"}
  failed: {tool: "./program.py:raises", with: {text: "{{ question }}"}, retry: 2, on_failure: skip}
  mended: {tool: "./program.py:raises", with: {text: "{{ said }}"}, default: mended}
  refused: {model: far, prompt: "{{ question }}", on_failure: skip}
outputs: {answer: "{{ said }}", found: "{{ found }}", real: "{{ real }}", failed: "{{ failed }}"}
"""
ASKS = """
name: asks
models: {far: {use: openai, model: far, base_url: "http://127.0.0.1:9/v1", api_key_env: UPSTREAM}}
nodes:
  found: {tool: "./program.py:returns", with: {text: x}}
  sure: {ask: "Is {{ found }} right?", schema: boolean}
outputs: {sure: "{{ sure }}"}
"""
BREAKS = """
name: breaks
inputs: {question: {type: string}}
models:
  m: {use: "./program.py:make", model: breaks}
  far: {use: openai, model: far, base_url: "http://127.0.0.1:9/v1", api_key_env: UPSTREAM}
nodes:
  said: {model: m, prompt: "{{ question }}"}
  failed: {tool: "./program.py:raises", with: {text: "{{ question }}"}}
outputs: {answer: "{{ failed }}"}
"""
QUESTION = f"why {CANARIES['CANARY_API_KEY']} and {CANARIES['UPSTREAM']}?"


class Repeats(BaseHTTPRequestHandler):
    """A server that repeats what it was asked, with its headers, in its refusal."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        said = json.dumps({"error": {"message": f"no: {dict(self.headers)} {body.decode()}"}})
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(said.encode())

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with programs, and one recorded run of `leak`."""
    folder = tmp_path_factory.mktemp("canaries")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Repeats)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    (folder / "program.py").write_text(PROGRAM)
    (folder / "leak.yaml").write_text(FLOW.replace("URL", url))
    (folder / "asks.yaml").write_text(ASKS)
    (folder / "breaks.yaml").write_text(BREAKS)
    words = ("run", "leak.yaml", "-i", f"question={QUESTION}", "--run-id", "first")
    said = ran(folder, *words, "--events", "events.jsonl", "--timeline", "timeline.html")
    (folder / "said.txt").write_text(said)
    yield folder
    server.shutdown()
    server.server_close()


def environment(folder: Path, **more: str) -> dict[str, str]:
    place = {"WEFT_JOURNAL": str(folder / "journal.sqlite"), "WEFT_HOME": str(folder / "home")}
    return {**os.environ, **CANARIES, **place, "COLUMNS": "200", "NO_PROXY": "*", **more}


def ran(folder: Path, *words: str, **more: str) -> str:
    """All that a command says. It may fail, and is not to end by a signal."""
    done = subprocess.run(
        [*WEFT, *words],
        cwd=folder,
        env=environment(folder, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode >= 0
    return (done.stdout + done.stderr).decode()


def assert_clean(text: str, *, marks: bool = True) -> None:
    """No canary is in `text`, wherever lines were broken; where one was, there is a mark."""
    for shown in (text, re.sub(r"\s+", " ", text), re.sub(r"[\s│]+", "", text)):
        for secret in SPELLED:
            for spelled in (secret, re.sub(r"\s+", "", secret)):
                assert spelled not in shown, f"{spelled!r} in {shown[:3000]!r}"
    if marks:
        assert "[secret:" in text


def test_the_console_and_the_files_that_a_run_writes(folder: Path) -> None:
    said = (folder / "said.txt").read_text()
    assert_clean(said)
    assert "real" in said  # the program worked with the values
    assert "ToolRaised" in said
    assert_clean((folder / "events.jsonl").read_text())
    assert_clean((folder / "timeline.html").read_text())


def test_the_document_of_a_run_that_fails(folder: Path) -> None:
    words = ("run", "breaks.yaml", "-i", f"question={QUESTION}", "--json", "--debug")
    said = ran(folder, *words)
    assert '"status": "failed"' in said
    assert_clean(said)


def test_debug_shows_a_traceback_without_secrets(folder: Path) -> None:
    bad = FLOW.replace("name: leak", f"name: {json.dumps(CANARIES['CANARY_API_KEY'])}")
    (folder / "bad.yaml").write_text(bad)
    said = ran(folder, "check", "bad.yaml", "--debug")
    assert "Traceback" in said
    assert_clean(said)


def test_spans_hold_neither_secrets_nor_prompts(folder: Path) -> None:
    words = ("run", "breaks.yaml", "-i", f"question=PROMPT-TEXT {QUESTION}", "--quiet")
    said = ran(folder, *words, OTEL_TRACES_EXPORTER="console")
    spans = "\n".join(re.findall(r"^\{\n.*?^\}$", said, re.MULTILINE | re.DOTALL))
    # A model, tried three times, and a tool, their nodes, the run.
    assert spans.count('"status_code": "ERROR"') == 7
    assert '"description": "ToolRaised"' in spans
    assert '"description": "failed: said, failed"' in spans
    assert "PROMPT-TEXT" not in spans
    assert_clean(said)
    content = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    said = ran(folder, *words, **{"OTEL_TRACES_EXPORTER": "console", content: "true"})
    assert "PROMPT-TEXT" in said
    assert_clean(said)


@pytest.mark.slow
def test_the_live_view(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(folder).items():
        monkeypatch.setenv(name, value)
    command = (*WEFT, "run", "leak.yaml", "-i", f"question={QUESTION}")
    with Terminal(command, folder) as terminal:
        terminal.end()
        assert_clean(terminal.screen)


def test_the_journal_and_what_is_made_of_it(folder: Path) -> None:
    with closing(open_journal(str(folder / "journal.sqlite"), to_read=True)) as journal:
        for run in journal.runs():
            kept = [repr(journal.header(run.run))]
            kept += [repr(record) for record in journal.records(run.run)]
            assert_clean("\n".join(kept))
    assert_clean(ran(folder, "runs", "show", "first", "--outputs"))
    assert_clean(ran(folder, "runs", "show", "first", "--outputs", "--json"))
    ran(folder, "runs", "export", "first", "first.cassette")
    assert_clean((folder / "first.cassette").read_text())
    ran(folder, "run", "leak.yaml", "-i", "question=other", "--run-id", "second")
    assert_clean(ran(folder, "diff", "first", "second"))
    assert_clean(ran(folder, "diff", "first", "second", "--json"))


@pytest.mark.slow
def test_replay_and_resume_have_the_values_and_show_none(folder: Path) -> None:
    said = ran(folder, "replay", "first")
    assert "identical" in said
    assert_clean(said, marks=False)
    assert_clean(ran(folder, "replay", "first", "--json"), marks=False)
    assert_clean(ran(folder, "resume", "first"))
    without = {"CANARY_API_KEY": "other-key-value", "UPSTREAM": "another-key-value"}
    assert_clean(ran(folder, "replay", "first", **without), marks=False)


@pytest.mark.slow
def test_a_question_and_its_answer(folder: Path) -> None:
    said = ran(folder, "run", "asks.yaml", "--run-id", "asked")
    said += ran(folder, "runs", "show", "asked")
    assert "asks" in said
    assert_clean(said)


def test_metrics(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(folder).items():
        monkeypatch.setenv(name, value)
    metrics = RunMetrics()
    flow = weft.load(folder / "leak.yaml")
    result = flow.run_sync({"question": QUESTION}, listeners=[metrics.listener()])
    assert "canary-7f3a" in result.outputs["answer"]  # a program in Python has the values
    assert result.outputs["real"] == "real"
    assert_clean(generate_latest(metrics.registry).decode(), marks=False)


def test_the_gateway(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(folder).items():
        monkeypatch.setenv(name, value)
    errors: list[str] = []
    flows = [weft.load(folder / f"{name}.yaml") for name in ("leak", "breaks")]
    gateway = WorkflowGateway(
        flows, GatewayOptions(port=0), report=lambda exchange: errors.append(repr(exchange))
    )
    gateway.bind()
    asked = [{"role": "user", "content": QUESTION}]
    bodies = [
        {"model": "breaks", "messages": asked},
        {"model": "breaks", "messages": asked, "stream": True},
        {"model": "leak", "messages": asked},
        {"model": "leak", "messages": asked, "stream": True},
        {"model": QUESTION, "messages": asked},
        {"model": "leak", "messages": asked, QUESTION: 1},
        {"model": "leak", "messages": [{"role": QUESTION, "content": "x"}]},
        {"model": "leak", "messages": asked, "inputs": {QUESTION: QUESTION}},
    ]

    async def main() -> list[str]:
        up = asyncio.Event()
        serving = asyncio.create_task(gateway.serve(up.set))
        await up.wait()
        said = []
        headers = {"authorization": f"Bearer {CANARIES['UPSTREAM']}"}
        async with httpx2.AsyncClient(
            base_url=gateway.address, trust_env=False, timeout=PATIENCE_S, headers=headers
        ) as client:
            for body in bodies:
                answer = await client.post("/v1/chat/completions", json=body)
                said.append(f"{answer.status_code} {answer.headers} {answer.text}")
            said.append((await client.get("/metrics")).text)
        gateway.drain()
        await serving
        return said

    said = asyncio.run(main())
    assert [text[:3] for text in said[:4]] == ["500", "500", "200", "200"]
    for text in said:
        assert_clean(text, marks=False)
    assert "[secret:CANARY_API_KEY]" in said[2]
    assert "[secret:CANARY_API_KEY]" in said[3].replace('"}, "', "")


def test_the_mcp_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp import Client

    for name, value in environment(folder).items():
        monkeypatch.setenv(name, value)
    flows = [weft.load(folder / f"{name}.yaml") for name in ("leak", "breaks")]

    async def main() -> list[str]:
        server = WorkflowMcpServer(flows)
        said = []
        async with Client(server.server, cache=None) as client:
            for name in ("leak", "breaks"):
                answer = await client.call_tool(name, {"question": QUESTION})
                said.append(repr(answer))
        await server.aclose()
        return said

    for text in asyncio.run(main()):
        assert_clean(text)


def test_the_page_of_the_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(folder).items():
        monkeypatch.setenv(name, value)
    page = RunsPage(str(folder / "journal.sqlite"), port=0)

    async def main() -> list[str]:
        up = asyncio.Event()
        serving = asyncio.create_task(page.serve(up.set))
        await up.wait()
        root, _, key = page.url.partition("/#key=")
        said = []
        headers = {"authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(
            base_url=root, trust_env=False, timeout=PATIENCE_S, headers=headers
        ) as client:
            seqs = ",".join(map(str, range(1, 60)))
            for path in (
                "/",
                "/api/runs",
                "/api/run?run=first",
                "/api/records?run=first&after=0",
                f"/api/details?run=first&seqs={seqs}",
                f"/api/run?run={CANARIES['UPSTREAM']}",
            ):
                said.append((await client.get(path)).text)
        page.stop()
        await serving
        return said

    said = asyncio.run(main())
    for text in said:
        assert_clean(text, marks=False)
    assert "[secret:" in "".join(said)
