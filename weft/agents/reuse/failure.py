"""One failure for several callers: each gets an error of its own.

An error learns on its way up at which node it happened, so one object cannot serve two nodes.
"""

from __future__ import annotations

import copy

from weft.core.conversion import convert
from weft.core.errors import WeftError


def own(error: Exception) -> WeftError:
    """A copy of `error` with its cause; what is no `WeftError` or cannot be copied is wrapped."""
    found = convert(error)
    try:
        copied = copy.copy(found)
    except Exception:  # noqa: BLE001 - a class of the user may refuse to be copied
        copied = WeftError(found.message, hint=found.hint, retryable=found.retryable)
    copied.__cause__ = found.__cause__
    return copied
