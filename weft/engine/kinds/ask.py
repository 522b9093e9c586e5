"""A person's word: the node pauses, holds no slot, and goes on with the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.engine.node import Ask, Inputs, NodeContext, Then, Work


def ask(
    question: Callable[[Inputs], str],
    schema: Mapping[str, Any] | None = None,
    then: Then | None = None,
) -> Work:
    """A work that asks `question(inputs)`; the answer, through `then` if given, is the value.

    `schema` is the JSON Schema of an answer. The engine hands on what it is given: whoever takes
    the answer from a person checks it.
    """

    async def work(_: NodeContext, inputs: Inputs) -> Ask:
        return Ask(question(inputs), schema or {}, then)

    return work
