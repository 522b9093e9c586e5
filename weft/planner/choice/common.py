"""What several clients can all do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from weft.core.errors import ModelError
from weft.core.ports import Capabilities, ModelClient


async def common(clients: Iterable[ModelClient]) -> Capabilities:
    """What each of `clients` that answers can do. Raises: what the last raises, if none does."""
    found: list[Capabilities] = []
    failure: ModelError | None = None
    for client in clients:
        try:
            found.append(await client.capabilities())
        except ModelError as error:
            failure = error
    if not found:
        raise failure or ValueError("there are no clients")
    shared: dict[str, Any] = {
        field.name: all(getattr(each, field.name) for each in found)
        for field in fields(Capabilities)
        if isinstance(field.default, bool)
    }
    adapters = [a for a in found[0].adapters if all(a in each.adapters for each in found)]
    layouts = [one for one in found[0].layouts if all(one in each.layouts for each in found)]
    extra = [
        one for one in found[0].extra_fields if all(one in each.extra_fields for each in found)
    ]
    contexts = [each.max_context_tokens for each in found if each.max_context_tokens is not None]
    return Capabilities(
        **shared,
        top_logprobs=min(each.top_logprobs for each in found),
        layouts=tuple(layouts),
        adapters=tuple(adapters),
        max_context_tokens=min(contexts, default=None),
        extra_fields=tuple(extra),
        sampling=found[0].sampling if len({each.sampling for each in found}) == 1 else None,
    )
