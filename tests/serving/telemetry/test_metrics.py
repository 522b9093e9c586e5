"""What runs did, in numbers that a scraper reads."""

from __future__ import annotations

import urllib.request

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from tests.serving.telemetry.runs import growing, run, told
from weft.core.errors import ServeError
from weft.core.events import (
    HumanAsked,
    NodeDecoded,
    NodeDenoised,
    NodeFinished,
    NodeStarted,
    Outcome,
    RunFinished,
    RunStarted,
)
from weft.core.ids import NodeId, RunId
from weft.core.values import Denoised, Speculated, Usage
from weft.serving.telemetry.metrics import MetricsServer, RunMetrics

Samples = dict[tuple[str, ...], float]


def counted(metrics: RunMetrics) -> Samples:
    """Every sample but those of buckets: name and values of labels, by their sorted names."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
        if not sample.name.endswith(("_created", "_bucket"))
    }


def test_a_run_with_calls() -> None:
    metrics = RunMetrics()
    listener = metrics.listener()
    for event in told():
        listener(event)
    found = counted(metrics)
    assert found["weft_runs_total", "flow", "succeeded"] == 1
    assert found["weft_runs_active", "flow"] == 0
    assert found["weft_nodes_total", "flow", "model", "succeeded"] == 1
    assert found["weft_node_seconds_sum", "flow", "model"] == 0.5
    assert found["weft_tokens_total", "flow", "prompt"] == 12
    assert found["weft_tokens_total", "flow", "cached"] == 4
    assert found["weft_model_requests_total", "flow"] == 1
    assert found["weft_money_usd_total", "flow"] == 0.25


def test_runs_of_one_process_add_up() -> None:
    metrics = RunMetrics()
    for _ in range(2):
        run(growing(), metrics.listener())
    found = counted(metrics)
    assert found["weft_runs_total", "growing", "failed"] == 2
    assert found["weft_nodes_total", "growing", "tool", "succeeded"] == 2 * 4
    assert found["weft_nodes_total", "growing", "call", "failed"] == 2
    assert found["weft_retries_total", "growing", "tool"] == 2
    assert found["weft_nodes_running", "growing"] == 0


def test_under_way_and_waiting_for_a_person() -> None:
    metrics = RunMetrics()
    listener = metrics.listener()
    node = NodeId("ok")
    listener(RunStarted(RunId("r"), "flow", "2026-11-22T10:00:00+00:00", (), {}))
    listener(NodeStarted(node, 1, 0.0))
    listener(HumanAsked(node, "?", {}, 0.1))
    found = counted(metrics)
    assert found["weft_runs_active", "flow"] == 1
    assert found["weft_nodes_running", "flow"] == 1
    assert found["weft_questions", "flow"] == 1
    listener(NodeFinished(node, Outcome("cancelled"), 0.2))
    listener(RunFinished("cancelled", Usage(), (), 0.2))
    found = counted(metrics)
    assert [found[name, "flow"] for name in ("weft_runs_active", "weft_questions")] == [0, 0]
    assert found["weft_nodes_running", "flow"] == 0


def test_decoders() -> None:
    metrics = RunMetrics()
    listener = metrics.listener()
    listener(RunStarted(RunId("r"), "flow", "2026-11-22T10:00:00+00:00", (), {}))
    listener(NodeDecoded(NodeId("a"), Speculated("lookup", 8, 5, 3), 0.1))
    listener(NodeDenoised(NodeId("b"), Denoised("threshold", 4, 12), 0.2))
    found = counted(metrics)
    assert found["weft_decoder_forwards_total", "lookup", "flow"] == 3
    assert found["weft_decoder_tokens_total", "lookup", "flow"] == 5
    assert found["weft_decoder_tokens_total", "threshold", "flow"] == 12


def test_a_port_of_this_machine_serves_them_until_it_is_closed() -> None:
    metrics = RunMetrics()
    run(growing(), metrics.listener())
    exposed = MetricsServer(metrics.registry, 0)
    try:
        assert exposed.address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(exposed.address, timeout=120) as answer:
            assert b'weft_runs_total{flow="growing",status="failed"} 1.0' in answer.read()
        port = int(exposed.address.rpartition(":")[2].partition("/")[0])
        with pytest.raises(ServeError, match=f"port {port} cannot be taken"):
            MetricsServer(CollectorRegistry(), port)
    finally:
        exposed.close()
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(exposed.address, timeout=120)


def test_an_impossible_port() -> None:
    with pytest.raises(ServeError, match="70000"):
        MetricsServer(CollectorRegistry(), 70000)
