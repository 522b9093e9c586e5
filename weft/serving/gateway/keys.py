"""The keys that clients must show. Knows no requests; never shows what the keys are."""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from weft.core.errors import SpecError

_SHORTEST_CHARS = 16
_MAKE_ONE = "make one with: openssl rand -hex 24"


class Keys:
    """A set of keys, of which only digests are kept.

    Raises: `SpecError` when there is none, or one that is too short or that no header can carry.
    """

    def __init__(self, keys: Iterable[str], source: str = "the list of keys") -> None:
        found = [key.strip() for key in keys if key.strip()]
        if not found:
            raise SpecError(f"there is no key in {source}", hint=_MAKE_ONE)
        for key in found:
            if not (key.isascii() and key.isprintable()) or " " in key:
                raise SpecError(f"a key in {source} has characters that no header can carry")
            if len(key) < _SHORTEST_CHARS:
                what = f"a key in {source} has fewer than {_SHORTEST_CHARS} characters"
                raise SpecError(what, hint=_MAKE_ONE)
        self._digests = [_digest(key) for key in found]

    @classmethod
    def from_env(cls, name: str) -> Keys:
        """The keys in an environment variable, separated by commas. Raises: `SpecError`."""
        text = os.environ.get(name)
        if text is None:
            raise SpecError(f"the environment variable {name} is not set", hint=_MAKE_ONE)
        return cls(text.split(","), f"the environment variable {name}")

    @classmethod
    def from_file(cls, path: Path) -> Keys:
        """The keys in a file, one a line, that nobody else may read. Raises: `SpecError`."""
        try:
            with path.open(encoding="utf-8") as file:
                about = os.fstat(file.fileno())
                if not stat.S_ISREG(about.st_mode):
                    raise SpecError(f"{path} is not a file")
                if about.st_mode & 0o077:
                    raise SpecError(f"others may read {path}", hint=f"type: chmod 600 {path}")
                lines = file.read().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise SpecError(f"cannot read the keys in {path}: {error}") from None
        return cls((line for line in lines if not line.startswith("#")), str(path))

    def admit(self, shown: str) -> bool:
        """True when `shown` is one of the keys; takes as long whichever it is, or none."""
        mine = _digest(shown)
        fits = [hmac.compare_digest(mine, digest) for digest in self._digests]
        return any(fits)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
