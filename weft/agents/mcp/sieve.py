"""Everything that a server sends, before the SDK reads it: listings are vetted, floods end it.

The SDK refuses a whole listing for one broken tool, and checks results against any schema.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from mcp.client import Transport
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCResponse

from weft.agents.mcp.listing import Listing

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, TransportStreams

_MOST_UNASKED: Final = 10_000


def sieved(inner: Transport, listing: Listing, flooded: Callable[[], None]) -> Transport:
    """`inner`, whose listings go through `listing`; `flooded` is called when it sends too much.

    Too much are 10,000 messages in a row that answer nothing.
    """
    return _sieved(inner, listing, flooded)


@asynccontextmanager
async def _sieved(
    inner: Transport, listing: Listing, flooded: Callable[[], None]
) -> AsyncIterator[TransportStreams]:
    async with inner as (read, write):
        yield _Sieve(read, listing, flooded), write


class _Sieve:
    """The SDK's `ReadStream` over another."""

    def __init__(
        self,
        inner: ReadStream[SessionMessage | Exception],
        listing: Listing,
        flooded: Callable[[], None],
    ) -> None:
        self._inner = inner
        self._listing = listing
        self._flooded = flooded
        self._unasked = 0

    @property
    def last_context(self) -> Any:
        """What the SDK asks of its own streams: the context of the last message's sender."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return await self._passed(await self._inner.receive())

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> _Sieve:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._passed(await self._inner.__anext__())

    async def __aenter__(self) -> _Sieve:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, traceback)

    async def _passed(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, (JSONRPCResponse, JSONRPCError)):
            self._unasked = 0
        else:
            self._unasked += 1
            if self._unasked == _MOST_UNASKED:
                self._flooded()
        if isinstance(message, JSONRPCResponse) and isinstance(message.result.get("tools"), list):
            # In a thread: checking schemas takes its time, and nobody else should wait for it.
            await asyncio.to_thread(self._listing.vet, message.result)
        return item
