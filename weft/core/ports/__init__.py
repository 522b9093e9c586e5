"""The doors between weft's rooms: small protocols that the layers above and below agree on."""

from weft.core.ports.clock import Clock, Timer
from weft.core.ports.metering import UsageMeter, complete
from weft.core.ports.model import (
    Capabilities,
    ConcurrentAttention,
    Delta,
    Layout,
    ModelClient,
    ModelEvent,
    ModelRequest,
    Placed,
    Prefilled,
    Program,
    ReasoningDelta,
    Sampling,
    Startable,
    TextDelta,
    Tokenizing,
    ToolCallDelta,
    Warmable,
    cut_off,
    unrefused,
)
from weft.core.ports.store import Entry, ResultStore
from weft.core.ports.tool import BatchRunner, ToolRunner

__all__ = [
    "BatchRunner",
    "Capabilities",
    "Clock",
    "ConcurrentAttention",
    "Delta",
    "Entry",
    "Layout",
    "ModelClient",
    "ModelEvent",
    "ModelRequest",
    "Placed",
    "Prefilled",
    "Program",
    "ReasoningDelta",
    "ResultStore",
    "Sampling",
    "Startable",
    "TextDelta",
    "Timer",
    "Tokenizing",
    "ToolCallDelta",
    "ToolRunner",
    "UsageMeter",
    "Warmable",
    "complete",
    "cut_off",
    "unrefused",
]
