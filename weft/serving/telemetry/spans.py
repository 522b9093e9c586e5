"""A run as OpenTelemetry spans: the run, its nodes, their model and tool calls.

Names and attributes follow OpenTelemetry's semantic conventions for generative AI (`gen_ai.*`);
what these lack is in `weft.*`. Content of people, models or tools, including error messages, is
left out unless `content` is set.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from opentelemetry.context import Context, attach
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from weft.core.call_context import set_trace_headers
from weft.core.calls import (
    CallEvent,
    CallId,
    ModelAnswered,
    ModelCalled,
    ModelStreamed,
    ModelTold,
    ToolCalled,
    ToolReturned,
    ToolsListed,
)
from weft.core.errors import Failure
from weft.core.events import (
    BreakerChanged,
    CacheMissed,
    Event,
    GraphGrew,
    HumanAnswered,
    HumanAsked,
    NodeDecoded,
    NodeDenoised,
    NodeFinished,
    NodeInfo,
    NodeLogged,
    NodeRepairing,
    NodeRerouted,
    NodeRetrying,
    NodeSpent,
    NodeStarted,
    RunFinished,
    RunResumed,
    RunStarted,
    jsonable,
)
from weft.core.ids import NodeId, stem
from weft.core.ports.model import ModelRequest
from weft.core.values import Completion, Denoised, Speculated, Usage

Attributes = dict[str, str | bool | int | float | Sequence[str]]


def asked(model: str, request: ModelRequest) -> Attributes:
    """The attributes of a model call: the request and its sampling."""
    sampling = request.sampling
    attributes: dict[str, str | int | float | Sequence[str] | None] = {
        "gen_ai.operation.name": "chat" if request.messages else "text_completion",
        "gen_ai.provider.name": "weft",
        "gen_ai.request.model": model,
        "gen_ai.request.max_tokens": sampling.max_tokens,
        "gen_ai.request.temperature": sampling.temperature,
        "gen_ai.request.top_p": sampling.top_p,
        "gen_ai.request.top_k": sampling.top_k,
        "gen_ai.request.seed": sampling.seed,
        "gen_ai.request.stop_sequences": sampling.stop or None,
        "gen_ai.output.type": "text" if request.schema is None else "json",
        "weft.decoder": request.decode.method,
    }
    return {name: value for name, value in attributes.items() if value is not None}


def answered(completion: Completion) -> Attributes:
    """The attributes of a model's answer: finish reason, usage, decoder."""
    attributes: Attributes = {"gen_ai.response.finish_reasons": (completion.finish_reason,)}
    if completion.model:
        attributes["gen_ai.response.model"] = completion.model
    attributes |= spent(completion.usage)
    if completion.decoding is not None:
        attributes |= decoded(completion.decoding)
    return attributes


def called(call: ToolCalled) -> Attributes:
    """The attributes of a tool call."""
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.tool,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.call,
        "weft.effect": call.effect,
    }


def spent(usage: Usage) -> Attributes:
    """The attributes of a usage: tokens, passes and money."""
    thought = usage.reasoning_tokens
    return {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        **({} if thought is None else {"gen_ai.usage.reasoning.output_tokens": thought}),
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "weft.usage.requests": usage.requests,
        "weft.usage.forwards": usage.forwards,
        "weft.usage.money_usd": usage.money,
    }


def decoded(how: Speculated | Denoised) -> Attributes:
    """The attributes of a decoder that writes several tokens per pass."""
    if isinstance(how, Denoised):
        return {
            "weft.decoder": how.method,
            "weft.decoder.lossless": how.lossless,
            "weft.decoder.forwards": how.forwards,
            "weft.decoder.kept_tokens": how.kept,
        }
    return {
        "weft.decoder": how.method,
        "weft.decoder.lossless": how.lossless,
        "weft.decoder.forwards": how.forwards,
        "weft.decoder.drafted_tokens": how.drafted,
        "weft.decoder.accepted_tokens": how.accepted,
    }


_MAX_CHARS: Final = 16_384
_MAX_NODES: Final = 10
_SECOND_NS: Final = 1_000_000_000
_Key = tuple[NodeId, int, CallId]


@dataclass(slots=True)
class _CallSpan:
    """A running call. `silent`: no piece of its answer has come."""

    span: Span
    at_s: float
    silent: bool = True


class Spans:
    """A listener for one run. Call it with every event and call, in order.

    A node's span begins with its first attempt and links to the spans of the nodes whose values it
    received. `inside`: the trace that the run is part of. `content`: record prompts, answers,
    arguments and results, each cut off after 16 KiB.
    """

    def __init__(
        self, tracer: Tracer, *, inside: Context | None = None, content: bool = False
    ) -> None:
        self._tracer = tracer
        self._inside = inside
        self._content = content
        self._wall_ns = 0
        self._now_ns = 0
        self._infos: dict[NodeId, NodeInfo] = {}
        self._open: dict[NodeId, Span] = {}
        self._ended: dict[NodeId, SpanContext] = {}
        self._calls: dict[_Key, _CallSpan] = {}
        self._spent: dict[NodeId, Usage] = {}
        self._run: Span | None = None

    def __call__(self, record: Event | CallEvent) -> None:
        """Add one record."""
        self._now_ns = self._wall_ns + int(record.at_s * _SECOND_NS)
        match record:
            case RunStarted() | RunResumed():
                self._run_begins(record)
            case GraphGrew():
                self._infos.update((info.id, info) for info in record.nodes)
            case NodeStarted():
                self._node_starts(record)
            case NodeFinished():
                self._node_ends(record)
            case RunFinished():
                self._run_ends(record)
            case ModelCalled() | ModelStreamed() | ModelAnswered() | ToolCalled() | ToolReturned():
                self._call(record)
            case _:
                if (span := self._open.get(getattr(record, "node", NodeId("")))) is not None:
                    self._note(span, record)

    # -- the run -----------------------------------------------------------------------------

    def _run_begins(self, event: RunStarted | RunResumed) -> None:
        began_ns = int(datetime.fromisoformat(event.wall).timestamp() * _SECOND_NS)
        self._wall_ns = began_ns - int(event.at_s * _SECOND_NS)
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.conversation.id": event.run,
            "weft.run.id": event.run,
        }
        if isinstance(event, RunStarted):
            self._infos.update((info.id, info) for info in event.nodes)
            attributes["gen_ai.workflow.name"] = event.flow
        else:
            attributes["weft.run.part"] = event.part
        if self._run is None:
            name = f"invoke_workflow {event.flow}" if isinstance(event, RunStarted) else "resume"
            self._run = self._tracer.start_span(
                name, self._inside, attributes=attributes, start_time=began_ns
            )
        else:  # the resuming process emits `RunResumed` before `RunStarted`
            self._run.set_attributes(attributes)

    def _run_ends(self, event: RunFinished) -> None:
        for key in list(self._calls):
            self._call_ends(key, None)
        for node in list(self._open):
            self._open.pop(node).end(self._now_ns)
        if self._run is not None:
            self._run.set_attributes({"weft.status": event.status, **spent(event.usage)})
            if event.status == "failed":
                why = "; ".join(event.reasons) if self._content else _failed_nodes(event.missed)
                self._run.set_status(Status(StatusCode.ERROR, why[:1000]))
            self._run.end(self._now_ns)

    # -- nodes -------------------------------------------------------------------------------

    def _node_starts(self, event: NodeStarted) -> None:
        span = self._open.get(event.node)
        if span is not None:
            span.set_attribute("weft.node.attempts", event.attempt)
            return
        info = self._infos.get(event.node) or NodeInfo(event.node, "call")
        links = [
            Link(self._ended[source], {"weft.edge": "data"})
            for source in info.sources
            if source in self._ended
        ]
        attributes: Attributes = {
            "weft.node.id": event.node,
            "weft.node.kind": info.kind,
            "weft.node.attempts": event.attempt,
        }
        if info.resource is not None:
            attributes["weft.resource"] = info.resource
        self._open[event.node] = self._tracer.start_span(
            f"{info.kind} {stem(event.node)}",
            self._around(info.parent),
            attributes=attributes,
            links=links,
            start_time=self._now_ns,
        )

    def _around(self, node: NodeId | None) -> Context | None:
        while node is not None and node not in self._open:
            info = self._infos.get(node)
            node = None if info is None else info.parent
        span = self._run if node is None else self._open[node]
        return self._inside if span is None else set_span_in_context(span, self._inside)

    def _node_ends(self, event: NodeFinished) -> None:
        span = self._open.pop(event.node, None)
        if span is None:
            return
        outcome = event.outcome
        span.set_attributes({"weft.status": outcome.status, "weft.recalled": event.recalled})
        if outcome.via:
            span.set_attribute("weft.via", outcome.via)
        if event.node in self._spent:
            span.set_attributes(spent(self._spent.pop(event.node)))
        if outcome.failure is not None:
            self._failed(span, outcome.failure, error=outcome.status == "failed")
        self._ended[event.node] = span.get_span_context()
        span.end(self._now_ns)

    def _note(self, span: Span, event: Event | CallEvent) -> None:
        """Add an event of a node between its beginning and its end to its span."""
        match event:
            case NodeSpent(node=node, usage=usage):
                self._spent[node] = self._spent.get(node, Usage()) + usage
            case CacheMissed() | HumanAnswered():
                name = "cache miss" if isinstance(event, CacheMissed) else "answer"
                self._add(span, name, {})
            case BreakerChanged(kind=kind, name=of, state=state):
                what: Attributes = {"weft.kind": kind, "weft.name": of, "weft.state": state}
                self._add(span, "circuit breaker", what)
            case NodeRetrying(failure=failure, attempt=attempt, delay_s=delay_s):
                attributes: Attributes = {"weft.attempt": attempt, "weft.delay_s": delay_s}
                attributes["error.type"] = failure.error
                self._add(span, "retry", attributes)
            case NodeRerouted(to=to, failure=failure):
                self._add(span, "reroute", {"weft.to": to, "error.type": failure.error})
            case HumanAsked(question=question):
                self._add(span, "question", {"weft.question": question} if self._content else {})
            case NodeLogged(text=text) if self._content:
                self._add(span, "log", {"message": text[:_MAX_CHARS]})
            case NodeRepairing(number=number, failure=failure):
                self._add(span, "repair", {"weft.repair": number, "error.type": failure.error})
            case NodeDecoded(speculated=how) | NodeDenoised(denoised=how):
                span.set_attributes(decoded(how))
            case _:
                pass  # streaming, expanding and waiting show in the inner spans

    def _add(self, span: Span, name: str, attributes: Attributes) -> None:
        span.add_event(name, attributes, self._now_ns)

    # -- calls -------------------------------------------------------------------------------

    def _call(self, event: CallEvent) -> None:
        if isinstance(event, ModelTold | ToolsListed):
            return
        key = (event.node, event.attempt, event.call)
        match event:
            case ModelCalled(model=model, request=request):
                attributes = asked(model, request)
                if self._content:
                    messages = [
                        {"role": m.role, "content": m.parts or m.content} for m in request.messages
                    ]
                    attributes["gen_ai.input.messages"] = _text(messages)
                self._call_begins(key, f"chat {model}", SpanKind.CLIENT, attributes, event.at_s)
            case ToolCalled(tool=tool):
                attributes = called(event)
                if self._content:
                    attributes["gen_ai.tool.call.arguments"] = _text(event.arguments)
                name = f"execute_tool {tool}"
                self._call_begins(key, name, SpanKind.INTERNAL, attributes, event.at_s)
            case _ if (call := self._calls.get(key)) is not None:
                self._call_goes_on(call, event)
                if not isinstance(event, ModelStreamed):
                    self._call_ends(key, event.failure)

    def _call_begins(
        self, key: _Key, name: str, kind: SpanKind, attributes: Attributes, at_s: float
    ) -> None:
        self._call_ends(key, None)
        attributes["weft.node.id"] = key[0]
        inside = self._around(key[0])
        span = self._tracer.start_span(name, inside, kind, attributes, start_time=self._now_ns)
        self._calls[key] = _CallSpan(span, at_s)
        _enter(set_span_in_context(span, inside))

    def _call_goes_on(
        self, call: _CallSpan, event: ModelStreamed | ModelAnswered | ToolReturned
    ) -> None:
        match event:
            case ModelStreamed(deltas=deltas) if call.silent and deltas:
                call.silent = False
                waited_s = deltas[0][0] - call.at_s
                call.span.set_attribute("gen_ai.response.time_to_first_chunk", waited_s)
            case ModelAnswered(completion=completion) if completion is not None:
                call.span.set_attributes(answered(completion))
                if self._content:
                    messages = [{"role": "assistant", "content": completion.text}]
                    call.span.set_attribute("gen_ai.output.messages", _text(messages))
            case ToolReturned(value=value, failure=None) if self._content:
                call.span.set_attribute("gen_ai.tool.call.result", _text(value))
            case _:
                pass  # `_call_ends` records a failure

    def _call_ends(self, key: _Key, failure: Failure | None) -> None:
        call = self._calls.pop(key, None)
        if call is not None:
            if failure is not None:
                self._failed(call.span, failure, error=True)
            call.span.end(self._now_ns)
            _enter(self._around(key[0]))

    def _failed(self, span: Span, failure: Failure, *, error: bool) -> None:
        span.set_attribute("error.type", failure.error)
        if error:
            why = failure.message[:1000] if self._content else failure.error
            span.set_status(Status(StatusCode.ERROR, why))


def _enter(inside: Context | None) -> None:
    """Make the innermost span of `inside` the parent of what the calling task does next.

    Calls are reported in the task that makes them. So the server that it calls, and spans of a
    tool's own code, become part of the trace.
    """
    try:
        asyncio.current_task()
    except RuntimeError:  # no task: the listener reads a recorded run
        return
    inside = Context() if inside is None else inside
    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier, inside)
    set_trace_headers(carrier)
    attach(inside)  # never detached: it ends with the task


def _failed_nodes(nodes: Sequence[NodeId]) -> str:
    more = f" and {len(nodes) - _MAX_NODES} more" if len(nodes) > _MAX_NODES else ""
    return f"failed: {', '.join(nodes[:_MAX_NODES])}{more}" if nodes else "failed"


def _text(value: object) -> str:
    return json.dumps(value, default=jsonable, ensure_ascii=False)[:_MAX_CHARS]
