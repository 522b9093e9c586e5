"""The options of a declared model, checked by name. Knows no client."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from weft.core.errors import BuildError
from weft.workflow.document.defects import closest


def known(options: Mapping[str, Any], there: Collection[str], what: str = "option") -> None:
    """Raises: `BuildError` when `options` holds a key that is not `there`."""
    for key in options:
        if key not in there:
            raise BuildError(f"there is no {what} {key!r}", hint=closest(key, sorted(there)))
