"""Filters messages of a server before the SDK reads them: vets listings, ends floods.

The SDK refuses a whole listing for one broken tool, checks results against any schema, and first
sends `server/discover`, which older servers may leave unanswered, for ten seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

from mcp.client import Transport
from mcp.shared.message import SessionMessage
from mcp.types import (
    METHOD_NOT_FOUND,
    ErrorData,
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
)

from weft.agents.mcp.listing import ToolListing

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, TransportStreams, WriteStream

_MOST_UNSOLICITED: Final = 10_000
_DISCOVER: Final = "server/discover"


@asynccontextmanager
async def filter_messages(
    inner: Transport, listing: ToolListing, flooded: Callable[[], None], discover_s: float
) -> AsyncIterator[TransportStreams]:
    """`inner`, with listings vetted by `listing`; calls `flooded` at 10,000 unsolicited messages.

    The count restarts with each response. A server that does not answer the SDK's first request
    within `discover_s` is treated as not supporting it.
    """
    async with inner as (read, write):
        first = _DiscoverWatcher(write)
        yield _FilteredReadStream(read, listing, flooded, first, discover_s), first


_Stream = TypeVar("_Stream", bound="ReadStream[Any] | WriteStream[Any]")


class _StreamProxy(Generic[_Stream]):
    """A stream of the SDK that delegates to another."""

    def __init__(self, inner: _Stream) -> None:
        self._inner = inner

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._inner.__aexit__(*error)


class _DiscoverWatcher(_StreamProxy["WriteStream[SessionMessage]"]):
    """The SDK's `WriteStream`, which remembers the id of the request `server/discover`."""

    discover: int | str | None = None

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        if isinstance(message, JSONRPCRequest) and message.method == _DISCOVER:
            self.discover = message.id
        await self._inner.send(item)


class _FilteredReadStream(_StreamProxy["ReadStream[SessionMessage | Exception]"]):
    """The SDK's `ReadStream`, filtered."""

    def __init__(
        self,
        inner: ReadStream[SessionMessage | Exception],
        listing: ToolListing,
        flooded: Callable[[], None],
        first: _DiscoverWatcher,
        discover_s: float,
    ) -> None:
        super().__init__(inner)
        self._first = first
        self._discover_s = discover_s
        self._listing = listing
        self._flooded = flooded
        self._unsolicited = 0
        self._answered = False
        self._deadline_s = 0.0

    @property
    def last_context(self) -> Any:
        """The context of the last message's sender, which the SDK reads from its own streams."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return await self._filter(await self._next(self._inner.receive))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._filter(await self._next(self._inner.__anext__))

    async def _next(
        self, receive: Callable[[], Awaitable[SessionMessage | Exception]]
    ) -> SessionMessage | Exception:
        """The next message; the wait for the server's first answer is bounded."""
        if self._answered:
            return await receive()
        clock = asyncio.get_running_loop().time
        self._deadline_s = self._deadline_s or clock() + self._discover_s
        try:
            async with asyncio.timeout_at(self._deadline_s):
                return await receive()
        except TimeoutError:
            self._answered = True
            if self._first.discover is None:
                return await receive()
            unknown = ErrorData(code=METHOD_NOT_FOUND, message="no answer to server/discover")
            error = JSONRPCError(jsonrpc="2.0", id=self._first.discover, error=unknown)
            return SessionMessage(error)

    async def _filter(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, (JSONRPCResponse, JSONRPCError)):
            self._unsolicited = 0
            self._answered = True
        else:
            self._unsolicited += 1
            if self._unsolicited == _MOST_UNSOLICITED:
                self._flooded()
        if isinstance(message, JSONRPCResponse) and isinstance(message.result.get("tools"), list):
            # In a thread: checking schemas may take long, and must not block the event loop.
            await asyncio.to_thread(self._listing.vet, message.result)
        return item
