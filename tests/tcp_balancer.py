"""A plain TCP balancer: connections go to the backends in turn; one that refuses is passed over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count


@asynccontextmanager
async def tcp_balancer(*ports: int) -> AsyncIterator[int]:
    """The port of a balancer before those of 127.0.0.1."""
    turns = count()
    connections: set[asyncio.Task[None]] = set()

    async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        first = next(turns)
        for place in range(len(ports)):
            with suppress(OSError):
                return await asyncio.open_connection(
                    "127.0.0.1", ports[(first + place) % len(ports)]
                )
        raise ConnectionError("no backend listens")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        writers = [writer]
        try:
            there, back = await connect()
            writers.append(back)
            async with asyncio.TaskGroup() as both:
                both.create_task(copy(reader, back))
                both.create_task(copy(there, writer))
        except OSError:
            pass
        finally:
            for each in writers:
                each.close()
                with suppress(OSError):
                    await each.wait_closed()
            connections.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=2048)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(connections):
            task.cancel()
        if connections:
            await asyncio.wait(list(connections))


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy to the end, and pass the end on."""
    with suppress(OSError):
        while some := await reader.read(1 << 16):
            writer.write(some)
            await writer.drain()
    writer.close()
