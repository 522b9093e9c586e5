"""Spans leave by the exporter that the environment names; here to a collector in this process."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from weft.core.errors import BuildError
from weft.serving.telemetry.export import Tracing, wanted


class Collector(ThreadingHTTPServer):
    """Takes OTLP over HTTP, as a collector does."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            named = {item.key: item.value.string_value for item in resource.resource.attributes}
            self.server.services.add(named["service.name"])
            for scope in resource.scope_spans:
                self.server.spans.extend(scope.spans)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(ExportTraceServiceResponse().SerializeToString())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


PROGRAM = textwrap.dedent("""
    from tests.serving.telemetry.runs import growing, run, told
    from weft.serving.telemetry.export import Tracing
    tracing = Tracing()
    run(growing(), tracing.listener())
    listener = tracing.listener()
    for event in told():
        listener(event)
""")


def exported(**environment: str) -> str:
    """What a process of its own prints that traces two runs: providers are set once a process."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("OTEL")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_collector_receives_the_spans(collector: Collector) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    exported(
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.address,
        OTEL_SERVICE_NAME="shop",
        TRACEPARENT=parent,
    )
    assert collector.services == {"shop"}
    names = sorted(span.name for span in collector.spans)
    assert names.count("tool doubled") == 3
    assert names.count("execute_tool search") == 2
    assert {"invoke_workflow growing", "invoke_workflow flow", "chat writer"} <= set(names)
    assert {span.trace_id.hex() for span in collector.spans} == {parent.split("-")[1]}
    assert sum(len(span.links) for span in collector.spans) == 3


def test_the_console() -> None:
    assert '"name": "chat writer"' in exported(OTEL_TRACES_EXPORTER="console")


@pytest.mark.parametrize(
    ("environment", "asked"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, True),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_who_asks_for_spans(environment: dict[str, str], asked: bool) -> None:
    assert wanted(environment) is asked


def test_an_exporter_that_there_is_not() -> None:
    with pytest.raises(BuildError, match="jaeger") as caught:
        Tracing({"OTEL_TRACES_EXPORTER": "jaeger"})
    assert "otlp, console or none" in str(caught.value)
