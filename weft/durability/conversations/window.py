"""The window of a conversation: the last messages that a model still reads. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from weft.core.values import Message

_BYTES_PER_TOKEN: Final = 4
_TOKENS_PER_MESSAGE: Final = 4
_TOKENS_PER_MEDIUM: Final = 800


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """The most messages, and the most tokens, of a window; None: no limit."""

    last: int | None = None
    tokens: int | None = None

    @property
    def half(self) -> WindowLimits:
        """Half of them, rounded up."""
        half = (None if each is None else (each + 1) // 2 for each in (self.last, self.tokens))
        return WindowLimits(*half)


def estimated_tokens(message: Message) -> int:
    """About how many tokens a message has: a quarter of its bytes, and some for its frame."""
    texts = [message.content, *(call.name + call.arguments for call in message.tool_calls)]
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    media = _TOKENS_PER_MEDIUM * len(message.media)
    return -(-size // _BYTES_PER_TOKEN) + _TOKENS_PER_MESSAGE + media


def window_start(messages: Sequence[Message], limits: WindowLimits) -> int:
    """The index of the first message in the window.

    Calls of tools stay together with their results: where both do not fit, neither is inside. The
    window then begins later, and is empty at worst.
    """
    start, tokens = len(messages), 0
    for first, end in reversed(list(_exchanges(messages))):
        tokens += sum(map(estimated_tokens, messages[first:end]))
        if limits.last is not None and len(messages) - first > limits.last:
            break
        if limits.tokens is not None and tokens > limits.tokens:
            break
        start = first
    return start


def _exchanges(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """The parts that stay together: one message, or calls with the results behind them."""
    first = 0
    for index, message in enumerate(messages):
        if index and message.role != "tool":
            yield first, index
            first = index
    if messages:
        yield first, len(messages)


def answered_calls(messages: Sequence[Message]) -> tuple[Message, ...]:
    """`messages` without calls that have no result, and results that have no call.

    Servers refuse both. They are left where a run ended between a call and its result.
    """
    results = {message.tool_call_id for message in messages if message.role == "tool"}
    kept: list[Message] = []
    called: set[str] = set()
    for message in messages:
        if message.role == "tool":
            if message.tool_call_id not in called:
                continue
        elif message.tool_calls:
            calls = tuple(call for call in message.tool_calls if call.id in results)
            called.update(call.id for call in calls)
            if not calls and not message.content and not message.parts:
                continue
            message = (
                message
                if len(calls) == len(message.tool_calls)
                else replace(message, tool_calls=calls)
            )
        kept.append(message)
    return tuple(kept)
