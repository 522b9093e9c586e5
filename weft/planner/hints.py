"""What was probably meant by a name that does not exist. Knows nothing of what names stand for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

_SHOWN: Final = 12


def instead_of(name: str, names: Iterable[str]) -> str:
    """A hint for a model that wrote `name` where only `names` exist."""
    there = list(names)
    listed = ", ".join(there[:_SHOWN]) + (", ..." if len(there) > _SHOWN else "")
    close = difflib.get_close_matches(name, there, n=1)
    meant = f"did you mean {close[0]}? " if close else ""
    return f"{meant}there are: {listed}" if there else "there are none"
