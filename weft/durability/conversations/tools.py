"""Reads and writes of a store of conversations as calls of tools, so that a run records them.

A resumed run then sends the request that it sent before, and a replay does not touch the store.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from weft.core.errors import ToolNotFound
from weft.core.ids import NodeId, in_any_attempt
from weft.core.ports.conversations import ConversationStore
from weft.core.redaction import Redactor
from weft.core.values import ToolSpec
from weft.durability.conversations.thread import message_of, text_of
from weft.durability.conversations.window import WindowLimits, window_start
from weft.engine.scheduler.effects import current_call_site

READ: Final = "conversation_read"
APPEND: Final = "conversation_append"
_THREAD: Final = {"type": "object", "properties": {"thread": {"type": "string"}}}
_SPECS: Final = (
    ToolSpec(READ, "Read a conversation.", _THREAD, effect="pure"),
    ToolSpec(APPEND, "Append messages to a conversation.", _THREAD, effect="idempotent"),
)


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
