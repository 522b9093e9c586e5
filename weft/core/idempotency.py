"""The idempotency key of the call that is being made: the same whenever it is repeated.

Knows nothing of who checks it.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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
