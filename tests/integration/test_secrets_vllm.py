"""Secrets that a program handles are in no log: not in vLLM's, not in weft's, not in the journal.

A search that finds nothing proves something only where it could find: what the secrets passed
through is checked as well.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from weft.serving.vllm.serve import chosen, stop
from weft.serving.vllm.supervise import registry
from weft.serving.vllm.supervise.registry import ServingEntry

pytestmark = [pytest.mark.vllm, pytest.mark.model]
WEFT = [sys.executable, "-m", "weft"]
MODEL = "smollm2-135m-instruct"
NAMES = ("PLANTED_SERVER_KEY", "PLANTED_TOOL_TOKEN", "PLANTED_CUSTOMER_SECRET")
TOOLS = """
import os

import weft


@weft.tool
def look_up(customer: str, context: weft.ToolContext) -> str:
    context.log(f"asks for {customer} with {os.environ['PLANTED_TOOL_TOKEN']}")
    return f"{customer} was answered with {os.environ['PLANTED_TOOL_TOKEN']}"


@weft.tool
def fail(customer: str) -> str:
    raise ValueError(f"{customer} is refused with {os.environ['PLANTED_TOOL_TOKEN']}")
"""
FLOW = """
name: planted
inputs: {{customer: string}}
models:
  m: {{use: vllm, model: {model}, base_url: "{url}", api_key_env: PLANTED_SERVER_KEY}}
tools: {{look_up: "./tools.py:look_up", fail: "./tools.py:fail"}}
nodes:
  found: {{tool: look_up, with: {{customer: "{{{{ customer }}}}"}}}}
  refused: {{tool: fail, with: {{customer: "{{{{ customer }}}}"}}, default: none}}
  said: {{model: m, prompt: "{{{{ customer }}}}: {{{{ found }}}}. Continue.", max_tokens: 8}}
outputs: {{said: "{{{{ said }}}}", found: "{{{{ found }}}}", refused: "{{{{ refused }}}}"}}
"""


@contextmanager
def serving(folder: Path) -> Iterator[ServingEntry]:
    """`weft serve` with a key, once it is ready; what it prints is in the folder as well."""
    with (folder / "serve.out").open("wb") as out:
        command = [*WEFT, "serve", MODEL, "--api-key-env", NAMES[0]]
        command += ["--kv-cache", "256MiB", "--max-context", "512", "--debug"]
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + 240
        while not (found := [e for e in registry.entries() if e.status == "ready"]):
            assert process.poll() is None, (folder / "serve.out").read_text("utf-8")
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield found[0]
        for entry in chosen([found[0].id]):
            stop(entry)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


def status_of(entry: ServingEntry, key: str, body: Mapping[str, object]) -> int:
    """The status of a request that the server does not like."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    url = f"{entry.urls[0]}/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_planted_secrets_are_in_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = {name: f"{name[8:].lower()}-{secrets.token_hex(16)}" for name in NAMES}
    for name, value in planted.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("WEFT_STATE_DIR", str(tmp_path / "state"))
    key, _, customer = planted.values()
    (tmp_path / "tools.py").write_text(TOOLS, "utf-8")
    with serving(tmp_path) as entry:
        (tmp_path / "flow.yaml").write_text(FLOW.format(model=MODEL, url=entry.urls[0]), "utf-8")
        command = [*WEFT, "run", "flow.yaml", "-i", f"customer={customer}", "--debug", "-vv"]
        command += ["--journal", "runs.sqlite", "--events", "events", "--timeline", "page.html"]
        with (tmp_path / "run.out").open("wb") as out:
            ran = subprocess.run(command, cwd=tmp_path, stdout=out, stderr=out, check=False)
        said = (tmp_path / "run.out").read_text("utf-8")
        assert ran.returncode == 3, said  # `refused` has its default
        message = {"role": "user", "content": f"{customer} " * 200}
        refused = {"model": MODEL, "messages": [message]}
        assert status_of(entry, key, refused) == 400  # too long
        short = {**refused, "messages": [{"role": "user", "content": customer}]}
        schema = {"name": "s", "schema": {"type": customer}}
        for bad in (
            {"max_tokens": customer},
            {"response_format": {"type": "json_schema", "json_schema": schema}},
            {"structured_outputs": {"regex": f"({customer}"}},
            {"tools": [{"type": "function", "function": {"name": 1, "description": customer}}]},
        ):
            assert 400 <= status_of(entry, key, {**short, **bad}) < 500, bad.keys()
        assert status_of(entry, f"{key}-", refused) == 401
    log = Path(entry.replicas[0].log).read_text("utf-8")
    assert "Application startup complete" in log
    for name in NAMES[1:]:  # they went through the run, and are marks in its record
        assert f"[secret:{name}]" in (tmp_path / "events").read_text("utf-8")
        assert f"[secret:{name}]" in said
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    wanted = {"serve.out", "run.out", "events", "page.html", "runs.sqlite", "0.log"}
    assert wanted <= {path.name for path in files}
    for path in files:
        content = path.read_bytes()
        for name, value in planted.items():
            assert value.encode() not in content, f"{name} is in {path.relative_to(tmp_path)}"
