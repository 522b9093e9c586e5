"""Runs become spans: nested, linked along the data, in OpenTelemetry's words."""

from __future__ import annotations

import asyncio
import json
import random
from datetime import datetime

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tests.serving.telemetry.runs import SECRET, WALL, growing, run, told
from weft.core.call_context import trace_headers
from weft.core.calls import ModelAnswered, ModelCalled, ToolCalled
from weft.core.events import (
    CacheMissed,
    NodeFinished,
    NodeStarted,
    Outcome,
    RunFinished,
    RunResumed,
    RunStarted,
)
from weft.core.ids import NodeId, RunId
from weft.core.values import Usage
from weft.serving.telemetry.spans import Spans

Found = dict[str, ReadableSpan]


class Memory(SpanProcessor):
    """A tracer whose spans stay here, and how many were `begun`."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._provider = TracerProvider(shutdown_on_exit=False)
        self._provider.add_span_processor(self)
        self.begun = 0
        self._provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self._provider.get_tracer("test")

    def on_start(self, span: ReadableSpan, parent_context: object = None) -> None:
        self.begun += 1

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    def named(self) -> Found:
        return {span.name: span for span in self.spans}


def heard(*, content: bool = False) -> Memory:
    memory = Memory()
    spans = Spans(memory.tracer, content=content)
    for event in told():
        spans(event)
    return memory


def at_s(nanoseconds: int | None) -> float:
    assert nanoseconds is not None
    return round(nanoseconds / 1e9 - datetime.fromisoformat(WALL).timestamp(), 6)


def test_calls_lie_in_nodes_and_nodes_in_the_run() -> None:
    found = heard().named()
    assert set(found) == {
        "invoke_workflow flow",
        "tool find",
        "execute_tool search",
        "model write",
        "chat writer",
    }
    parents = {
        name: next((n for n, s in found.items() if span.parent == s.context), None)
        for name, span in found.items()
    }
    assert parents == {
        "invoke_workflow flow": None,
        "tool find": "invoke_workflow flow",
        "execute_tool search": "tool find",
        "model write": "invoke_workflow flow",
        "chat writer": "model write",
    }
    assert len({span.context.trace_id for span in found.values() if span.context}) == 1


def test_data_edges_are_links() -> None:
    found = heard().named()
    [link] = found["model write"].links
    assert link.context == found["tool find"].context
    assert not found["tool find"].links


def test_times_are_those_of_the_events() -> None:
    found = heard().named()
    assert (at_s(found["chat writer"].start_time), at_s(found["chat writer"].end_time)) == (0.5, 1)
    assert at_s(found["invoke_workflow flow"].start_time) == 0
    told_s = (found["chat writer"].attributes or {})["gen_ai.response.time_to_first_chunk"]
    assert told_s == pytest.approx(0.25)


def test_attributes_follow_the_conventions() -> None:
    found = heard().named()
    model = found["chat writer"]
    assert model.kind is SpanKind.CLIENT
    attributes = dict(model.attributes or {})
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.request.model"] == "writer"
    assert attributes["gen_ai.response.model"] == "small"
    assert attributes["gen_ai.request.max_tokens"] == 64
    assert attributes["gen_ai.request.seed"] == 7
    assert attributes["gen_ai.usage.input_tokens"] == 12
    assert attributes["gen_ai.usage.output_tokens"] == 5
    assert attributes["gen_ai.usage.cache_read.input_tokens"] == 4
    assert attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert "gen_ai.request.top_p" not in attributes, "what is not said is not told"
    whole = dict(found["invoke_workflow flow"].attributes or {})
    assert whole["gen_ai.workflow.name"] == "flow"
    assert whole["weft.usage.money_usd"] == 0.25


def test_each_attempt_is_a_call_of_its_own() -> None:
    calls = [span for span in heard().spans if span.name == "execute_tool search"]
    assert [span.status.status_code for span in calls] == [StatusCode.ERROR, StatusCode.UNSET]
    assert (calls[0].attributes or {})["error.type"] == "ToolRaised"


@pytest.mark.parametrize("content", [False, True])
def test_texts_are_told_only_to_who_asks(content: bool) -> None:
    everything = "".join(span.to_json() for span in heard(content=content).spans)
    assert (SECRET in everything) is content
    if content:
        told_in = json.loads(
            str(
                (heard(content=True).named()["chat writer"].attributes or {})[
                    "gen_ai.input.messages"
                ]
            )
        )
        assert told_in == [{"role": "user", "content": SECRET}]


def test_a_real_run_with_a_map_and_a_failure() -> None:
    memory = Memory()
    run(growing(), Spans(memory.tracer))
    by_node = {str((span.attributes or {}).get("weft.node.id", "")): span for span in memory.spans}
    assert set(by_node) == {"", "items", "doubled", *(f"doubled[{n}]" for n in range(3)), "broken"}
    inside = by_node["doubled"].context
    assert all(by_node[f"doubled[{n}]"].parent == inside for n in range(3))
    assert all(by_node[f"doubled[{n}]"].name == "tool doubled" for n in range(3))
    [retry] = by_node["doubled[1]"].events
    assert (retry.name, dict(retry.attributes or {})["weft.delay_s"]) == ("retry", 0.5)
    assert by_node["broken"].status.status_code is StatusCode.ERROR
    assert by_node[""].status.status_code is StatusCode.ERROR
    assert by_node["broken"].status.description == "ToolRaised"
    assert by_node[""].status.description == "failed: broken"


def test_whatever_is_lost_every_span_ends() -> None:
    """Events may be missing, as when a listener comes late; nothing raises, nothing stays open."""
    whole = told()
    for seed in range(200):
        chance = random.Random(seed)
        some = [event for event in whole[1:-1] if chance.random() < 0.7]
        memory = Memory()
        spans = Spans(memory.tracer)
        for event in (whole[0], *some, whole[-1]):
            spans(event)
        assert len(memory.spans) == memory.begun
        nodes = {event.node for event in some if isinstance(event, NodeStarted)}
        calls = sum(isinstance(event, ModelCalled | ToolCalled) for event in some)
        assert memory.begun == 1 + len(nodes) + calls


def test_a_miss_of_the_cache_is_told_in_the_span_of_its_node() -> None:
    memory = Memory()
    spans, node = Spans(memory.tracer), NodeId("find")
    spans(RunStarted(RunId("r"), "flow", WALL, (), {}))
    spans(NodeStarted(node, 1, 0.0))
    spans(CacheMissed(node, "0f" * 32, 0.5))
    spans(NodeFinished(node, Outcome("succeeded", 1), 1.0))
    spans(RunFinished("succeeded", Usage(), (), 1.0))
    [found] = [span for span in memory.spans if span.events]
    assert [event.name for event in found.events] == ["cache miss"]


def test_a_resumed_run_is_a_trace_that_says_which_part_it_is() -> None:
    memory = Memory()
    spans = Spans(memory.tracer)
    spans(RunResumed(RunId("r-1"), 2, WALL, 40.0))
    spans(NodeFinished(NodeId("find"), Outcome("succeeded", 1), 40.0, recalled=True))
    spans(RunFinished("succeeded", Usage(), (), 41.0))
    [whole] = memory.spans
    assert (whole.attributes or {})["weft.run.part"] == 2
    assert (at_s(whole.start_time), at_s(whole.end_time)) == (0, 1)


def test_a_run_inside_another_trace() -> None:
    memory = Memory()
    with memory.tracer.start_as_current_span("outer") as outer:
        from opentelemetry import context

        spans = Spans(memory.tracer, inside=context.get_current())
        spans(RunStarted(RunId("r"), "flow", WALL, (), {}))
        spans(RunFinished("succeeded", Usage(), (), 1.0))
    assert memory.named()["invoke_workflow flow"].parent == outer.get_span_context()


def test_what_a_call_asks_lies_in_its_span() -> None:
    memory = Memory()
    carried: list[tuple[type, str]] = []

    async def listening() -> None:
        listener = Spans(memory.tracer)
        for event in told():
            listener(event)
            parent = trace_headers().get("traceparent", "--")
            carried.append((type(event), parent.split("-")[2]))

    asyncio.run(listening())
    assert not trace_headers()
    inside = {
        name: f"{span.context.span_id:016x}"
        for name, span in memory.named().items()
        if span.context
    }
    during = [span for kind, span in carried if kind is ModelCalled]
    assert during == [inside["chat writer"]]
    after = [span for kind, span in carried if kind is ModelAnswered]
    assert after == [inside["model write"]]
