"""The loggers of weft: `weft.NAME`, without secrets, without handlers of their own."""

from __future__ import annotations

import logging

from weft.core.redaction import SecretFilter


def logger(name: str) -> logging.Logger:
    """The logger `weft.NAME`. What it logs has no secrets of this process."""
    made = logging.getLogger(f"weft.{name}")
    if not any(isinstance(each, SecretFilter) for each in made.filters):
        made.addFilter(SecretFilter())
    return made
