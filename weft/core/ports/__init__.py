"""The doors between weft's rooms: small protocols that the layers above and below agree on."""

from weft.core.ports.clock import Clock, Timer
from weft.core.ports.model import (
    Capabilities,
    ModelClient,
    ModelEvent,
    ModelRequest,
    Sampling,
    TextDelta,
    ToolCallDelta,
    complete,
)
from weft.core.ports.store import Entry, ResultStore
from weft.core.ports.tool import ToolRunner

__all__ = [
    "Capabilities",
    "Clock",
    "Entry",
    "ModelClient",
    "ModelEvent",
    "ModelRequest",
    "ResultStore",
    "Sampling",
    "TextDelta",
    "Timer",
    "ToolCallDelta",
    "ToolRunner",
    "complete",
]
