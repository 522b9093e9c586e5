"""One prompt of a case: the conversation, and what the answer is held to."""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.values import JsonSchema, Message


@dataclass(frozen=True, slots=True)
class Prompt:
    """`id` tells prompts of all cases apart. At most one of `schema` and `grammar`.

    A conversation that ends with an assistant's message leaves that open: the answer goes on there.
    """

    id: str
    messages: tuple[Message, ...]
    schema: JsonSchema | None = None
    grammar: str | None = None

    @property
    def free(self) -> bool:
        """Nothing constrains the answer."""
        return self.schema is None and self.grammar is None


def conversation(*turns: str) -> tuple[Message, ...]:
    """A user's and an assistant's messages in turn, the user's first."""
    return tuple(
        Message("assistant" if number % 2 else "user", text) for number, text in enumerate(turns)
    )
