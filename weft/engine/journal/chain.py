"""The hash chain of a run: each batch of records is bound to all that came before it.

Knows no database.
"""

from __future__ import annotations

from hashlib import sha256
from struct import pack
from typing import Final

START: Final = b""
"""Comes before the first batch, and before the first after batches without a chain."""
_BYTES: Final = 16


def link(before: bytes, seq: int, part: int, body: bytes) -> bytes:
    """The chain at a batch: of the chain `before` it, and what its row holds."""
    return sha256(before + pack(">QI", seq, part) + body).digest()[:_BYTES]
