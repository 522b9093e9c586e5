"""The classes that have a text: frozen dataclasses of weft's own, each under its name.

Nothing is looked up anywhere else, so a text can make no other object.
"""

from __future__ import annotations

import dataclasses
from typing import get_args

from weft.core.calls import CallEvent
from weft.core.codec.opaque import Opaque
from weft.core.errors import Failure
from weft.core.events import Event, NodeInfo, Outcome
from weft.core.ports.journal import Letter, RunHeader
from weft.core.ports.model import (
    Capabilities,
    ConcurrentAttention,
    ModelRequest,
    Placed,
    Prefilled,
    Program,
    ReasoningDelta,
    Sampling,
    TextDelta,
    ToolCallDelta,
)
from weft.core.values import (
    Completion,
    Denoised,
    Lossless,
    Lossy,
    Message,
    Speculated,
    ToolCall,
    ToolSpec,
    Usage,
)

KNOWN: dict[str, type] = {}


def register(*classes: type) -> None:
    """Give frozen dataclasses a text, under their names. Harmless when repeated.

    Raises: `TypeError` for what is none, `ValueError` when another class has the name.
    """
    for cls in classes:
        if not (dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen):  # type: ignore[attr-defined]
            raise TypeError(f"{cls.__name__} is no frozen dataclass")
        if KNOWN.setdefault(cls.__name__, cls) is not cls:
            raise ValueError(f"another class is called {cls.__name__}")


register(
    *get_args(Event),
    *get_args(CallEvent),
    *(RunHeader, Letter, NodeInfo, Outcome, Failure, Opaque),
    *(ModelRequest, Sampling, Placed, Program, ConcurrentAttention, Message, ToolCall, ToolSpec),
    *(TextDelta, ReasoningDelta, ToolCallDelta, Prefilled, Completion, Capabilities),
    *(Usage, Speculated, Denoised, Lossless, Lossy),
)
