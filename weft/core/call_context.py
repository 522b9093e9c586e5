"""What goes with a call that is being made: its idempotency key, and the W3C trace context."""

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
    """32 hexadecimal digits, the same in every attempt, also of what the node is inside."""
    content = f"{run}\0{in_any_attempt(node)}\0{call}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).hexdigest()[:_LENGTH]


def idempotency_key() -> str:
    """For the code of a tool whose effect is `idempotent`: what its server tells calls apart by.

    The same whenever this call is repeated: by a retry, or in a run that is resumed. Outside of a
    run nothing is repeated, and each call of this function gives another key.
    """
    return current_key() or uuid.uuid4().hex


current_key: Final[Callable[[], str]] = _KEY.get
"""The key of the call that is being made, empty where there is none."""


@contextmanager
def keyed(key: str) -> Iterator[None]:
    """Inside the `with` block a call is made whose key is `key`."""
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
