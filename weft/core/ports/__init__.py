"""The doors between weft's rooms: small protocols that the layers above and below agree on."""

from weft.core.ports.clock import Clock, Timer
from weft.core.ports.model import (
    Capabilities,
    Delta,
    ModelClient,
    ModelEvent,
    ModelRequest,
    Prefilled,
    Program,
    ReasoningDelta,
    Sampling,
    Startable,
    TextDelta,
    ToolCallDelta,
    Warmable,
    complete,
)
from weft.core.ports.store import Entry, ResultStore
from weft.core.ports.tool import BatchRunner, ToolRunner

__all__ = [
    "BatchRunner",
    "Capabilities",
    "Clock",
    "Delta",
    "Entry",
    "ModelClient",
    "ModelEvent",
    "ModelRequest",
    "Prefilled",
    "Program",
    "ReasoningDelta",
    "ResultStore",
    "Sampling",
    "Startable",
    "TextDelta",
    "Timer",
    "ToolCallDelta",
    "ToolRunner",
    "Warmable",
    "complete",
]
