"""A workflow's runs are heard from outside, where the environment asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import weft
from weft.core.errors import ServeError
from weft.serving.telemetry.spans import Spans
from weft.testing import FakeModel
from weft.workflow.document.spec.settings import Durability
from weft.workflow.runtime import run as flow_run
from weft.workflow.runtime.telemetry import CallObserver, serve_metrics

SECRET = "sesame-and-more-words"
TOOLS = '''
import weft

@weft.tool(effect="pure")
def search(topic: str, key: str) -> str:
    """Search."""
    return f"{topic} is found with {key}"
'''
FLOW = """
name: found
tools: {search: "./tools.py:search"}
inputs: {key: string}
nodes:
  notes:
    map: "{{ ['a', 'b'] }}"
    do: {tool: search, with: {topic: "{{ item }}", key: "{{ key }}"}}
outputs: {notes: "{{ notes }}"}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "flow.yaml").write_text(FLOW)
    monkeypatch.setenv("WEFT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SHOP_API_KEY", SECRET)
    return tmp_path


@pytest.mark.parametrize("durability", ["sync", "none"])
def test_calls_are_told_without_their_secrets(
    folder: Path, monkeypatch: pytest.MonkeyPatch, durability: Durability
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")

    def spans() -> CallObserver:
        return Spans(tracer, content=True)

    monkeypatch.setattr(flow_run, "run_spans", spans)
    result = weft.load(folder / "flow.yaml").run_sync(key=SECRET, durability=durability)
    assert result["notes"] == [f"{topic} is found with {SECRET}" for topic in "ab"]
    found = exporter.get_finished_spans()
    names = sorted(span.name for span in found)
    assert names == [
        "execute_tool search",
        "execute_tool search",
        "invoke_workflow found",
        "map notes",
        "tool notes",
        "tool notes",
    ]
    told = "".join(span.to_json() for span in found)
    assert "[secret:SHOP_API_KEY]" in told
    assert SECRET not in told


def test_a_model_of_a_run_that_nobody_records_has_spans(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    monkeypatch.setattr(flow_run, "run_spans", lambda: Spans(tracer))
    flow = weft.Flow("asked", models={"small": FakeModel(["Something."])})
    flow.output(said=flow.model("small", "Say something."))
    result = flow.run_sync(durability="none")
    assert result["said"] == "Something."
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert "chat small" in spans, sorted(spans)


@pytest.mark.parametrize("durability", ["sync", "none"])
def test_a_listener_that_breaks_costs_no_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, durability: Durability
) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(flow_run, "run_spans", lambda: broken)
    assert (
        weft.load(folder / "flow.yaml").run_sync(key="k", durability=durability).status
        == "succeeded"
    )


def test_the_environment_is_enough(folder: Path) -> None:
    program = "import weft; weft.load('flow.yaml').run_sync(key='k')"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "OTEL_TRACES_EXPORTER": "console"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.count('"name": "execute_tool search"') == 2
    assert '"name": "invoke_workflow found"' in done.stdout


def test_metrics_are_there_while_the_run_is(folder: Path) -> None:
    flow = weft.load(folder / "flow.yaml")
    with serve_metrics(0) as metrics:
        flow.run_sync(key="k", listeners=[metrics.listener])
        with urllib.request.urlopen(metrics.address, timeout=120) as answer:
            told = answer.read().decode()
        port = int(metrics.address.rpartition(":")[2].partition("/")[0])
        with pytest.raises(ServeError, match="cannot be taken"), serve_metrics(port):
            pass
    assert 'weft_runs_total{flow="found",status="succeeded"} 1.0' in told
    assert 'weft_nodes_total{flow="found",kind="tool",status="succeeded"} 2.0' in told
