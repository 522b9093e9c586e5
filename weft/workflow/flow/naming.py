"""What a node is called when nobody says: after the variable that its handle is assigned to.

    notes = flow.map(hits, ...)          the node is called `notes`

Only ever a convenience: where no simple assignment follows the call, the caller's default counts.
"""

from __future__ import annotations

import dis
import inspect
from functools import lru_cache
from itertools import pairwise
from types import CodeType

from weft.core.ids import is_name
from weft.workflow.document.part import RESERVED

_PACKAGE = "weft.workflow."


def assigned_name() -> str | None:
    """The variable that the innermost call from outside this package is assigned to."""
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return None
    name = _stores(frame.f_code).get(frame.f_lasti)
    usable = name is not None and is_name(name) and name not in RESERVED
    return name if usable and not str(name).startswith("_") else None


@lru_cache(maxsize=1024)
def _stores(code: CodeType) -> dict[int, str]:
    """For each call whose result goes straight into a variable: its offsets, and the variable."""
    found: dict[int, str] = {}
    for call, store in pairwise(dis.get_instructions(code)):
        if call.opname.startswith("CALL") and store.opname.startswith("STORE_"):
            name = store.argval[0] if isinstance(store.argval, tuple) else store.argval
            if isinstance(name, str) and store.opname not in ("STORE_ATTR", "STORE_SUBSCR"):
                # While a call runs, a frame points at it or at the inline caches behind it.
                found.update(dict.fromkeys(range(call.offset, store.offset), name))
    return found
