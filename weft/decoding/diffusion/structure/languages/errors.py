"""What cannot be laid out as a skeleton."""

from __future__ import annotations

from weft.core.errors import CapabilityError


class NotASkeleton(CapabilityError):
    """A schema or grammar, or a part of it, that has to be written from left to right."""
