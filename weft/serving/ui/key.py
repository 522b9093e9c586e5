"""The secret in the page's address. Whoever has it sees every run and may answer and cancel."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

_BYTES: Final = 24


class Key:
    """A random key, made anew with each server; it is worth nothing after its end."""

    def __init__(self) -> None:
        self.text: Final = secrets.token_urlsafe(_BYTES)
        self._digest = _digest(self.text)

    def admits(self, authorization: str) -> bool:
        """Whether a header `Authorization: Bearer KEY` shows it; takes as long either way."""
        scheme, _, shown = authorization.partition(" ")
        fits = hmac.compare_digest(_digest(shown.strip()), self._digest)
        return fits and scheme.lower() == "bearer"


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
