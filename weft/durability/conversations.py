"""Conversations that outlive runs: their windows, and recorded reads and writes of their store.

Reads and writes are calls of tools, so that a run records them: a resumed run sends the request
that it sent before, and a replay does not touch the store.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from weft.core.codec import decode, encode
from weft.core.errors import StoreError, ToolNotFound
from weft.core.ids import NodeId, in_any_attempt
from weft.core.ports.conversations import ConversationStore
from weft.core.redaction import Redactor
from weft.core.values import Message, ToolSpec
from weft.engine.scheduler.effects import current_call_site

READ: Final = "conversation_read"
APPEND: Final = "conversation_append"
_THREAD: Final = {"type": "object", "properties": {"thread": {"type": "string"}}}
_SPECS: Final = (
    ToolSpec(READ, "Read a conversation.", _THREAD, effect="pure"),
    ToolSpec(APPEND, "Append messages to a conversation.", _THREAD, effect="idempotent"),
)
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


def text_of(message: Message) -> str:
    """The message as JSON, media included."""
    return encode(message)


def message_of(text: str) -> Message:
    """The message that `text_of` wrote. Raises: `StoreError` for a damaged one."""
    try:
        message = decode(text)
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(f"a message of a conversation is damaged: {error}") from error
    if not isinstance(message, Message):
        raise StoreError("a message of a conversation is damaged: it is none")
    return message


class ConversationTools:
    """Implements `ToolRunner` over a store.

    `READ` takes `thread`, `last` and `tokens` (see `WindowLimits`); with `whole` it returns
    everything that the summary does not cover.
    `APPEND` takes `thread`, `messages` and a `summary` with its count.
    `run_key`: what distinguishes the run from all others, the same in all of its parts. With the
    node it is the key of an append, so that a node appends once, whatever is repeated. Secrets of
    `redactor` are not stored.
    """

    def __init__(
        self, store: ConversationStore, run_key: Callable[[], str], redactor: Redactor
    ) -> None:
        self._store = store
        self._run_key = run_key
        self._redactor = redactor

    def specs(self) -> tuple[ToolSpec, ...]:
        """The two calls."""
        return _SPECS

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Raises: `StoreError`."""
        site = current_call_site()
        node = NodeId("") if site is None else site.node
        if name == READ:
            return await asyncio.to_thread(self._read, arguments)
        if name == APPEND:
            return await asyncio.to_thread(self._append, node, arguments)
        raise ToolNotFound(f"no tool {name!r}")

    def _read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        found = self._store.read_thread(arguments["thread"])
        recent = [message_of(text) for text in found.messages[found.summarized :]]
        if not arguments.get("whole"):
            limits = WindowLimits(arguments.get("last"), arguments.get("tokens"))
            recent = recent[window_start(recent, limits) :]
        values = {"messages": recent, "summary": found.summary, "summarized": found.summarized}
        return self._redactor.restore(values)

    def _append(self, node: NodeId, arguments: Mapping[str, Any]) -> bool:
        content = f"{self._run_key()}\0{in_any_attempt(node)}"
        key = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        texts = [text_of(self._redactor.redact(message)) for message in arguments["messages"]]
        summary = arguments.get("summary")
        if summary is not None:
            summary = (self._redactor.redact(summary[0]), int(summary[1]))
        return self._store.append_to_thread(arguments["thread"], key, texts, summary)
