"""The error for schemas that cannot be laid out as a skeleton."""

from __future__ import annotations

from weft.core.errors import CapabilityError


class NotASkeleton(CapabilityError):
    """A schema or grammar, or a part of it, that must be written from left to right."""
