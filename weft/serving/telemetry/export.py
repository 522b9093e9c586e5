"""The export of spans, by OpenTelemetry's own environment variables. Makes no spans itself.

`OTEL_TRACES_EXPORTER` names exporters (`otlp`, `console`, `none`); an `OTEL_EXPORTER_OTLP_ENDPOINT`
alone means `otlp`. The exporters, the sampler, the batches and the resource read their own
variables. A program that has set its own tracer provider keeps it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from weft.core.call_context import trace_headers
from weft.core.calls import CallEvent
from weft.core.errors import BuildError
from weft.core.events import Event
from weft.core.extras import optional_packages

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


class Tracing:
    """The spans of runs, exported. `listener()` makes one listener for each run.

    Spans that are left when the process ends are sent then.
    Raises: `BuildError` for an unknown exporter, or when the packages are missing.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        env = os.environ if environment is None else environment
        with optional_packages("spans"):
            from opentelemetry import propagate, trace
        provider = trace.get_tracer_provider()
        if isinstance(provider, trace.ProxyTracerProvider):  # none is set
            provider = _provider(env)
        self._tracer = provider.get_tracer("weft", version("weft"))
        carried = {key.lower(): env[key] for key in ("TRACEPARENT", "TRACESTATE") if key in env}
        self._inside = propagate.extract(carried) if carried else None
        self._content = env.get(_CONTENT, "").lower() == "true"

    def listener(self) -> Callable[[Event | CallEvent], None]:
        """A listener for one run: in the current span, a request's trace, or `TRACEPARENT`'s."""
        from opentelemetry import context, propagate

        from weft.serving.telemetry.spans import Spans

        inside = context.get_current()  # empty where no span is open
        if not inside and (carried := trace_headers()):
            inside = propagate.extract(dict(carried))
        if not inside and self._inside is not None:
            inside = self._inside
        return Spans(self._tracer, inside=inside, content=self._content)


def wanted(environment: Mapping[str, str] | None = None) -> bool:
    """Whether the environment asks for spans."""
    env = os.environ if environment is None else environment
    if env.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    named = env.get("OTEL_TRACES_EXPORTER", "")
    return named != "none" and bool(named or any(name in env for name in _ENDPOINTS))


def _provider(env: Mapping[str, str]) -> TracerProvider:
    with optional_packages("spans"):
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    base = {
        "service.name": env.get("OTEL_SERVICE_NAME", "weft"),
        "service.version": version("weft"),
    }
    provider = TracerProvider(resource=Resource.create(base))
    for name in (env.get("OTEL_TRACES_EXPORTER") or "otlp").split(","):
        provider.add_span_processor(BatchSpanProcessor(_exporter(name.strip())))
    return provider


def _exporter(name: str) -> SpanExporter:
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter

    if name == "console":
        return ConsoleSpanExporter()
    if name != "otlp":
        raise BuildError(
            f"OTEL_TRACES_EXPORTER names {name!r}", hint="it may be otlp, console or none"
        )
    with optional_packages("the exporter otlp"):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    return OTLPSpanExporter()
