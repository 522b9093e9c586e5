"""What several replicas can all do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from weft.core.errors import ModelOverloaded, ModelUnavailable
from weft.core.ports.model import Capabilities, ModelClient


async def common(clients: Sequence[ModelClient]) -> Capabilities:
    """What every one of `clients` that answers can do; there is at least one client.

    Raises: what the last one raises, when none answers.
    """
    found: list[Capabilities] = []
    for number, client in enumerate(clients, start=1):
        try:
            found.append(await client.capabilities())
        except (ModelUnavailable, ModelOverloaded):
            if number == len(clients) and not found:
                raise
    return intersection(found)


def intersection(found: Sequence[Capabilities]) -> Capabilities:
    """A flag, an adapter or a layout if all have it, and the smallest numbers."""
    flags: dict[str, Any] = {
        field.name: all(getattr(one, field.name) for one in found)
        for field in fields(Capabilities)
        if isinstance(field.default, bool)
    }
    contexts = [one.max_context_tokens for one in found if one.max_context_tokens is not None]
    first, *others = found
    return Capabilities(
        **flags,
        top_logprobs=min(one.top_logprobs for one in found),
        layouts=tuple(each for each in first.layouts if all(each in one.layouts for one in others)),
        adapters=tuple(
            each for each in first.adapters if all(each in one.adapters for one in others)
        ),
        max_context_tokens=min(contexts, default=None),
        extra_fields=tuple(
            each for each in first.extra_fields if all(each in one.extra_fields for one in others)
        ),
        sampling=first.sampling if all(one.sampling == first.sampling for one in others) else None,
    )
