"""Tells the proposers of a serving what was written elsewhere. Nobody waits for them or fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from weft.serving.vllm.drafting.channel.message import to_line

_TIMEOUT_S: Final = 0.2
_PROPOSERS: Final = 64


async def tell(folder: Path, label: str, tokens: Sequence[int]) -> int:
    """Tell every proposer that listens in `folder`; how many took it. Never raises, nor waits long.

    Sockets that nobody listens at any more are removed.
    """
    line = to_line(label, tokens)
    async with asyncio.TaskGroup() as group:
        told = [group.create_task(_told(path, line)) for path in _sockets(folder)]
    return sum(each.result() for each in told)


async def _told(path: Path, line: bytes) -> bool:
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            _, writer = await asyncio.open_unix_connection(path)
            writer.write(line)
            await writer.drain()
        return True
    except ConnectionRefusedError:
        _remove(path)
        return False
    except (OSError, TimeoutError):
        return False
    finally:
        if writer is not None:
            with suppress(OSError):
                writer.close()


def _sockets(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.sock"))[:_PROPOSERS]


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)
