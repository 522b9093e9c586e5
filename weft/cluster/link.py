"""A connection to the bridge, in one event loop: frames out, frames in, and its end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

from weft.cluster.frames import frame, read_frame
from weft.cluster.nodes import check_ray, running_cluster
from weft.cluster.process import BRIDGES, BridgeProcess
from weft.cluster.settings import Ray, home
from weft.core.errors import ClusterError, WeftError

TOOLS: Final = ("-m", "weft.cluster.bridge", "tools")
REPLICAS: Final = ("-m", "weft.cluster.bridge", "replicas")
_PROBE_S: Final = 10.0
Received = Callable[[Mapping[str, Any], bytes], None]


class Link(Protocol):
    """A connection. `received` gets every frame, `ended` is called once, when it is lost."""

    def send(self, header: Mapping[str, Any], body: bytes = b"") -> None:
        """Send a frame; what a lost connection does not take, `ended` tells."""

    async def aclose(self) -> None:
        """Close it; `ended` is not called."""


Connect = Callable[[Received, Callable[[], None]], Any]
"""Opens a link, as an awaitable. Raises: `ClusterError`."""


async def check_listener(address: str) -> None:
    """Connect to HOST:PORT once: Ray itself waits a minute where nobody listens.

    Raises: `ClusterError`.
    """
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(_PROBE_S):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except OSError as error:  # TimeoutError, too
        why = "gives no answer" if isinstance(error, TimeoutError) else "has no Ray cluster"
        raise ClusterError(
            f"{address} {why}: {str(error) or 'it took too long'}",
            hint="is it up (`weft cluster status`), and is this its address?",
        ) from error
    writer.close()


class BridgeLink:
    """Implements `Link` over the socket of a bridge, which it shares with other links."""

    def __init__(
        self,
        bridge: BridgeProcess,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        received: Received,
        ended: Callable[[], None],
    ) -> None:
        self._bridge = bridge
        self._reader = reader
        self._writer = writer
        self._received = received
        self._ended = ended
        self._is_open = True
        self._reading = asyncio.ensure_future(self._read())

    @staticmethod
    async def open(
        command: list[str],
        settings: Mapping[str, str],
        received: Received,
        ended: Callable[[], None],
    ) -> BridgeLink:
        """Connect to the bridge, which is started where it does not run.

        Raises: `ClusterError`.
        """
        bridge = await _acquired(command, settings)
        try:
            reader, writer = await asyncio.open_unix_connection(bridge.socket)
        except OSError:  # it was killed, and its process has not quite ended
            BRIDGES.release(bridge)
            await asyncio.to_thread(bridge.close)
            bridge = await _acquired(command, settings)
            try:
                reader, writer = await asyncio.open_unix_connection(bridge.socket)
            except OSError as error:
                BRIDGES.release(bridge)
                raise ClusterError(f"the bridge to the cluster is gone: {error}") from error
        return BridgeLink(bridge, reader, writer, received, ended)

    def send(self, header: Mapping[str, Any], body: bytes = b"") -> None:
        if not self._writer.is_closing():
            self._writer.write(frame(header, body))

    async def aclose(self) -> None:
        self._reading.cancel()
        await asyncio.wait({self._reading})
        await self._close()

    async def _read(self) -> None:
        try:
            while (message := await read_frame(self._reader)) is not None:
                self._received(*message)
        except (WeftError, KeyError, TypeError, ValueError):
            pass  # a bridge that talks nonsense is as good as lost
        finally:
            await self._close()
        self._ended()

    async def _close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()
        BRIDGES.release(self._bridge)


async def _acquired(command: list[str], settings: Mapping[str, str]) -> BridgeProcess:
    """The bridge, which the caller releases. Raises: `ClusterError`."""
    starting = asyncio.ensure_future(asyncio.to_thread(BRIDGES.acquire, command, settings))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_release)
        raise


def _release(starting: asyncio.Future[BridgeProcess]) -> None:
    """A bridge that started too late for who wanted it."""
    if not starting.cancelled() and starting.exception() is None:
        BRIDGES.release(starting.result())


async def open_bridge(
    ray: Ray, command: Sequence[str], received: Received, ended: Callable[[], None]
) -> BridgeLink:
    """A link to the bridge to `ray` that `command` starts. Raises: `ClusterError`."""
    check_ray()
    address, token = ray.address, ray.token_file
    if not address:
        here = running_cluster()
        address, token = here.address, token or here.token_file
    await check_listener(address)
    return await BridgeLink.open([*command, address], _ray_settings(token), received, ended)


def _ray_settings(token_file: str | Path | None) -> dict[str, str]:
    """The variables of a driver of Ray: the user's own, its token, the folder of weft."""
    own = {name: value for name, value in os.environ.items() if name.startswith("RAY_")}
    own |= {"RAY_USAGE_STATS_ENABLED": "0", "WEFT_HOME": str(home())}
    if token_file is not None:
        own |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token_file)}
    return own
