"""The W3C trace context of what runs now, as the headers that tell it to whoever is called.

Knows no tracer: a gateway sets what its client sent, spans set themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Final

_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_HEADERS: ContextVar[Mapping[str, str]] = ContextVar("weft_trace_headers", default=_NONE)
_PARENT: Final = re.compile(
    "(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)
_STATE: Final = re.compile("[\x20-\x7e]{1,512}")


def trace_headers() -> Mapping[str, str]:
    """`traceparent`, and `tracestate` where there is one; empty outside of any trace."""
    return _HEADERS.get()


def set_trace_headers(headers: Mapping[str, str]) -> None:
    """From here on in this task, and in the tasks that it starts: the trace that `headers` name.

    Names in lower case; others are left out, and so is what does not follow W3C Trace Context.
    """
    parent, state = headers.get("traceparent", ""), headers.get("tracestate", "")
    if not _PARENT.fullmatch(parent):
        _HEADERS.set(_NONE)
    elif _STATE.fullmatch(state):
        _HEADERS.set(MappingProxyType({"traceparent": parent, "tracestate": state}))
    else:
        _HEADERS.set(MappingProxyType({"traceparent": parent}))
