"""Text and token ids for a whole fleet: its replicas serve one model, so any one may be asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from weft.core.errors import CapabilityError, ModelError, ModelOverloaded, ModelUnavailable
from weft.core.ports.model import Tokenizing
from weft.serving.fleet.replica import Replica

T = TypeVar("T")


async def of_any(replicas: Sequence[Replica], ask: Callable[[Tokenizing], Awaitable[T]]) -> T:
    """What the first of `replicas` says that answers; those put aside are asked last.

    Raises: `CapabilityError` where their clients do not tokenize, and what the last one raises.
    """
    failed: ModelError | None = None
    for replica in sorted(replicas, key=lambda one: not one.usable):
        client = replica.client
        if not isinstance(client, Tokenizing):
            raise CapabilityError(f"{replica.name} does not tokenize")
        try:
            return await ask(client)
        except (ModelUnavailable, ModelOverloaded) as error:
            failed = error
    assert failed is not None
    raise failed
