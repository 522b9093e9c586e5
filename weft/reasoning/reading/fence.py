"""Text of others inside a prompt, between fences that it cannot close. Knows no prompt."""

from __future__ import annotations

import re
from typing import Final

_BACKTICKS: Final = re.compile(r"`{3,}")


def fenced(text: str) -> str:
    """`text` between two lines of backticks, more of them than stand in a row anywhere in it."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"
