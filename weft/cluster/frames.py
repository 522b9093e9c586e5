"""Frames between weft, the bridge and workers: a JSON header, and a body that relays do not read.

Nothing is unpickled and nothing is evaluated: a frame of any content is data or a `ClusterError`.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic_core import from_json, to_json

from weft.core.errors import ClusterError

_SIZES: Final = struct.Struct("!II")
MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
"""The longest header and the longest body; a micro-batch is far smaller."""
Header = Mapping[str, Any]


def frame(header: Header, body: bytes = b"") -> bytes:
    """A frame. Raises: `ClusterError` beyond `MAX_FRAME_BYTES`."""
    text = to_json(header)
    _check(len(text), len(body))
    return b"".join((_SIZES.pack(len(text), len(body)), text, body))


def frames(content: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
    """The frames in `content`, with headers read. Raises: `ClusterError` for other data."""
    at = 0
    while at < len(content):
        if at + _SIZES.size > len(content):
            raise ClusterError("a message of the cluster was cut off")
        header, body = _SIZES.unpack_from(content, at)
        _check(header, body)
        at += _SIZES.size
        if at + header + body > len(content):
            raise ClusterError("a message of the cluster was cut off")
        yield _read(content[at : at + header]), content[at + header : at + header + body]
        at += header + body


async def read_frame(reader: asyncio.StreamReader) -> tuple[dict[str, Any], bytes] | None:
    """The next frame; None at the end of the stream. Raises: `ClusterError` for other data."""
    try:
        header, body = _SIZES.unpack(await reader.readexactly(_SIZES.size))
        _check(header, body)
        text = await reader.readexactly(header)
        return _read(text), await reader.readexactly(body) if body else b""
    except (asyncio.IncompleteReadError, OSError):
        return None


def _check(header: int, body: int) -> None:
    if header > MAX_FRAME_BYTES or body > MAX_FRAME_BYTES:
        raise ClusterError(f"a message of the cluster has {header + body:,} bytes")


def _read(text: bytes) -> dict[str, Any]:
    return table(read_json(text))


def read_json(text: bytes) -> Any:
    """JSON as data. Raises: `ClusterError`."""
    try:
        return from_json(text)
    except ValueError as error:
        raise ClusterError(f"a message of the cluster is no JSON: {error}") from None


def table(value: object) -> dict[str, Any]:
    """`value`, which must be an object of JSON. Raises: `ClusterError`."""
    if not isinstance(value, dict):
        raise ClusterError(f"a message of the cluster is {type(value).__name__}, not an object")
    return value
