"""One call that several callers wait for. It is cancelled when the last of them is.

Knows nothing of tools.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Coroutine
from typing import Any

from weft.agents.reuse.failure import own


class SharedCall:
    """Runs `work` in a task of its own, from now on."""

    def __init__(self, work: Coroutine[Any, Any, Any]) -> None:
        self._task = asyncio.ensure_future(work)
        self._waiting = 0
        self._shared = False

    @property
    def usable(self) -> bool:
        """True while another caller may still join: it runs for somebody, or it has a result."""
        if not self._task.done():
            return self._waiting > 0
        return not self._task.cancelled() and self._task.exception() is None

    async def result(self) -> Any:
        """The result, a copy for each caller. Raises: what the work raises, likewise."""
        self._shared |= self._waiting > 0
        self._waiting += 1
        try:
            return copy.deepcopy(await asyncio.shield(self._task))
        except Exception as error:
            if self._shared:
                raise own(error) from error.__cause__
            raise
        finally:
            self._waiting -= 1
            if not self._waiting and not self._task.done():
                self._task.cancel()
                await asyncio.wait({self._task})
