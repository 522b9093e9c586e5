"""What tells two versions of a function apart: a digest of its code. Runs nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.agents.tools.code import object_digest


def version_of(function: Callable[..., Any]) -> str:
    """A digest of the function's code and of what it reaches in its package; empty without source.

    What other packages do is not part of it: who changes that says so, with `@tool(version=...)`.
    """
    try:
        return (object_digest(function) or "")[:16]
    except OSError:
        return ""
