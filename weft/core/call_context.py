"""The context of the current call: its idempotency key and its W3C trace context."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Final

from weft.core.calls import CallId
from weft.core.ids import NodeId, RunId, in_any_attempt

_LENGTH: Final = 32
_KEY: ContextVar[str] = ContextVar("weft_idempotency_key", default="")


def key_of(run: RunId, node: NodeId, call: CallId) -> str:
    """32 hexadecimal digits, the same in every attempt of the node and of its parents."""
    content = f"{run}\0{in_any_attempt(node)}\0{call}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).hexdigest()[:_LENGTH]


def idempotency_key() -> str:
    """The key by which a server recognises repeated calls of a tool whose effect is `idempotent`.

    It is the same whenever this call is repeated: by a retry, or in a resumed run. Outside a run
    nothing is repeated, and each call of this function gives another key.
    """
    return current_key() or uuid.uuid4().hex


current_key: Final[Callable[[], str]] = _KEY.get
"""The key of the current call, empty where there is none."""


@contextmanager
def keyed(key: str) -> Iterator[None]:
    """Set `key` as the key of the calls made inside the `with` block."""
    token = _KEY.set(key)
    try:
        yield
    finally:
        _KEY.reset(token)


_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_HEADERS: ContextVar[Mapping[str, str]] = ContextVar("weft_trace_headers", default=_NONE)
_PARENT: Final = re.compile(
    "(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)
_STATE: Final = re.compile("[\x20-\x7e]{1,512}")


def trace_headers() -> Mapping[str, str]:
    """`traceparent`, and `tracestate` where there is one; empty outside any trace."""
    return _HEADERS.get()


def set_trace_headers(headers: Mapping[str, str]) -> None:
    """Set the trace context of this task from here on, and of the tasks that it starts.

    Names are in lower case. Other headers are ignored, as is what violates W3C Trace Context.
    """
    parent, state = headers.get("traceparent", ""), headers.get("tracestate", "")
    if not _PARENT.fullmatch(parent):
        _HEADERS.set(_NONE)
    elif _STATE.fullmatch(state):
        _HEADERS.set(MappingProxyType({"traceparent": parent, "tracestate": state}))
    else:
        _HEADERS.set(MappingProxyType({"traceparent": parent}))
