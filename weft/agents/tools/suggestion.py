"""The second half of "there is no such name": what was probably meant, and what there is.

Knows nothing of what the names stand for.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_SHOWN = 12


def suggestion(name: str, names: Iterable[str]) -> str:
    """A hint for somebody who wrote `name` where only `names` exist."""
    known = sorted(names)
    if not known:
        return "there are none"
    close = difflib.get_close_matches(name, known, n=1)
    more = ", ..." if len(known) > _SHOWN else ""
    listed = f"there are: {', '.join(known[:_SHOWN])}{more}"
    return f"did you mean {close[0]}? {listed}" if close else listed
