"""Progress notifications of one call, as log lines. Knows no call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.agents.foreign import shown

_MOST_LINES: Final = 200
_LONGEST: Final = 400


class ProgressLines:
    """Implements the SDK's progress callback. Says no line twice in a row, and not too many."""

    def __init__(self, log: Callable[[str], None], hidden: Callable[[str], str]) -> None:
        self._log = log
        self._hidden = hidden
        self._last = ""
        self._count = 0

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        line = self._line(progress, total, message)
        if line == self._last or self._count > _MOST_LINES:
            return
        self._last = line
        self._count += 1
        self._log(line if self._count <= _MOST_LINES else "no more of its progress is shown")

    def _line(self, progress: float, total: float | None, message: str | None) -> str:
        text = self._hidden(shown(message or "", _LONGEST))
        if text and not total:
            return text
        how_far = f"{progress:g} of {total:g}" if total else f"{progress:g}"
        return f"{how_far}: {text}" if text else how_far
