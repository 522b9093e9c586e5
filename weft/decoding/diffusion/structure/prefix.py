"""What several texts begin with."""

from __future__ import annotations

from collections.abc import Sequence


def common_prefix(texts: Sequence[str]) -> str:
    """The longest text that all of `texts`, one at least, begin with."""
    low, high = min(texts), max(texts)  # all others lie between them, and begin alike
    for at, char in enumerate(low):
        if high[at : at + 1] != char:
            return low[:at]
    return low
