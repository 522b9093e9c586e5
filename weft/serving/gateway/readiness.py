"""Whether a gateway can take requests: `/readyz`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from weft.core.errors import WeftError

_WITHIN_S: Final = 2.0
"""How long a probe waits for what it checks."""


class Readiness:
    """Checks what requests need, one check at a time: probes that overlap share it.

    `check` blocks; it raises a `WeftError` when something is missing, such as the journal.
    """

    def __init__(self, check: Callable[[], None] | None) -> None:
        self._check = check
        self._checking: asyncio.Future[None] | None = None

    async def problem(self) -> str | None:
        """Why the gateway is not ready; None: it is."""
        if self._check is None:
            return None
        if self._checking is None or self._checking.done():
            self._checking = asyncio.ensure_future(asyncio.to_thread(self._check))
        try:
            async with asyncio.timeout(_WITHIN_S):
                await asyncio.shield(self._checking)
        except TimeoutError:
            return "the journal does not answer"
        except WeftError:
            return "the journal cannot be used"
        return None
