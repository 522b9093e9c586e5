"""The options of a gateway: address, limits, and the keys that clients must send."""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from weft.core.errors import SpecError
from weft.core.hosts import is_loopback

_MIN_CHARS = 16
_MAKE_ONE = "make one with: openssl rand -hex 24"


class GatewayKeys:
    """A set of keys, of which only digests are kept.

    Raises: `SpecError` when there is none, or one that is too short or cannot be sent in a header.
    """

    def __init__(self, keys: Iterable[str], source: str = "the list of keys") -> None:
        found = [key.strip() for key in keys if key.strip()]
        if not found:
            raise SpecError(f"there is no key in {source}", hint=_MAKE_ONE)
        for key in found:
            if not (key.isascii() and key.isprintable()) or " " in key:
                raise SpecError(f"a key in {source} has characters that no header can carry")
            if len(key) < _MIN_CHARS:
                what = f"a key in {source} has fewer than {_MIN_CHARS} characters"
                raise SpecError(what, hint=_MAKE_ONE)
        self._digests = [_digest(key) for key in found]

    @classmethod
    def from_env(cls, name: str) -> GatewayKeys:
        """The keys in an environment variable, separated by commas. Raises: `SpecError`."""
        text = os.environ.get(name)
        if text is None:
            raise SpecError(f"the environment variable {name} is not set", hint=_MAKE_ONE)
        return cls(text.split(","), f"the environment variable {name}")

    @classmethod
    def from_file(cls, path: Path) -> GatewayKeys:
        """The keys in a file, one per line, that only the user may read. Raises: `SpecError`."""
        try:
            with path.open(encoding="utf-8") as file:
                info = os.fstat(file.fileno())
                if not stat.S_ISREG(info.st_mode):
                    raise SpecError(f"{path} is not a file")
                if info.st_mode & 0o077:
                    raise SpecError(f"others may read {path}", hint=f"type: chmod 600 {path}")
                lines = file.read().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise SpecError(f"cannot read the keys in {path}: {error}") from None
        return cls((line for line in lines if not line.startswith("#")), str(path))

    def admit(self, key: str) -> bool:
        """Whether `key` is one of the keys; in constant time."""
        own = _digest(key)
        fits = [hmac.compare_digest(own, digest) for digest in self._digests]
        return any(fits)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


_COUNTS = ("max_concurrent", "max_body_bytes", "max_choices", "max_messages")
_TIMES = (
    "timeout_s",
    "keep_alive_s",
    "header_timeout_s",
    "body_timeout_s",
    "write_timeout_s",
    "idle_timeout_s",
)


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """Address, keys and limits. Sizes are in bytes, times in seconds.

    port              0 lets the system choose
    keys              clients must send one of these; required where others can reach the host
    max_concurrent    running answers; each choice of a request counts as one
    max_waiting       waiting requests; further ones are refused with 429
    max_body_bytes    the largest request
    max_choices       the largest `n` of a request
    max_messages      the longest conversation
    timeout_s         the longest answer, waiting included; a client may ask for less
    drain_s           how long the end waits for running answers
    keep_alive_s      a stream that is silent for so long gets a comment, so that no proxy closes it
    header_timeout_s  how long a client may take to send its headers
    body_timeout_s    ... to send its body
    write_timeout_s   ... to take a piece of the answer
    idle_timeout_s    how long a connection may stay open between requests
    origins           origins of web pages that may use the gateway; none by default
    """

    host: str = "127.0.0.1"
    port: int = 8080
    keys: GatewayKeys | None = None
    max_concurrent: int = 64
    max_waiting: int = 256
    max_body_bytes: int = 4 * 1024 * 1024
    max_choices: int = 16
    max_messages: int = 2000
    timeout_s: float = 600.0
    drain_s: float = 30.0
    keep_alive_s: float = 10.0
    header_timeout_s: float = 20.0
    body_timeout_s: float = 30.0
    write_timeout_s: float = 60.0
    idle_timeout_s: float = 30.0
    origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in _COUNTS:
            if getattr(self, name) < 1:
                raise SpecError(f"`{name}` is {getattr(self, name)}", hint="it counts from 1")
        for name in _TIMES:
            if not 0 < getattr(self, name) < float("inf"):
                raise SpecError(f"`{name}` is {getattr(self, name)}", hint="give seconds above 0")
        if self.max_waiting < 0 or not 0 <= self.drain_s < float("inf"):
            raise SpecError("`max_waiting` and `drain_s` are 0 or more")
        if not 0 <= self.port <= 65535:
            raise SpecError(f"there is no port {self.port}", hint="0 lets the system choose")
        if "*" in self.origins:
            raise SpecError("any web page could use the gateway", hint="name the origins")
        if self.keys is None and not self.loopback:
            raise SpecError(
                f"others can reach {self.host or 'every address'}, and there are no keys",
                hint="set keys and name them with --api-key-env, or stay on 127.0.0.1",
            )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the host."""
        return is_loopback(self.host)
