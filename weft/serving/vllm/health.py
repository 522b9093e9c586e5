"""Whether a server answers `GET /health` with 200. Speaks just that much HTTP."""

from __future__ import annotations

import asyncio
from contextlib import suppress


async def healthy(host: str, port: int, timeout_s: float) -> bool:
    """One question; False for any other status, no answer in time, or no server at all."""
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(host.strip("[]"), port)
            try:
                name = host if ":" not in host else f"[{host.strip('[]')}]"
                asks = f"GET /health HTTP/1.1\r\nHost: {name}:{port}\r\nConnection: close\r\n\r\n"
                writer.write(asks.encode())
                status = (await reader.readline()).split()
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
    except (OSError, TimeoutError, ValueError):
        return False
    return len(status) > 1 and status[1] == b"200"
