"""Content addressing: a text is kept once, under the hash of what it says.

Does not know where it is kept.
"""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

from weft.core.errors import StoreError

_DIGEST_BYTES = 24  # of SHA-256: what stays is beyond any search for a collision (2^96 steps)
_CHECKSUM_BYTES = 4
_WORTH_PACKING = 512
_ROW_WORTH_PACKING = 2048  # a row is written while a run waits, and packing takes longer than that
_LARGEST = 1 << 30
_PACKED = b"x"  # how zlib's streams begin, and no JSON text does


class Blobs:
    """Collects what records keep apart: `bodies` by their digests."""

    def __init__(self) -> None:
        self.bodies: dict[bytes, bytes] = {}

    def keep(self, text: str) -> str:
        """The name of `text`: 32 characters that say what is in it."""
        body = text.encode("utf-8", "surrogatepass")
        digest = digest_of(body)
        self.bodies[digest] = body
        return urlsafe_b64encode(digest).decode()


def digest_of(body: bytes) -> bytes:
    """What a body is kept under."""
    return sha256(body).digest()[:_DIGEST_BYTES]


def named(name: str) -> bytes:
    """The digest that a name spells. Raises: `StoreError` for what is no name."""
    try:
        digest = urlsafe_b64decode(name)
    except ValueError as error:
        raise StoreError(f"{name[:40]!r} names nothing in a journal") from error
    return digest


def packed(body: bytes, worth: int = _WORTH_PACKING) -> bytes:
    """`body` as it is stored: compressed where that pays, from `worth` bytes on."""
    if len(body) < worth:
        return body
    small = zlib.compress(body, 1)
    return small if len(small) * 10 < len(body) * 9 else body


def unpacked(stored: bytes) -> bytes:
    """The inverse of `packed`. Raises: `StoreError` for damaged or absurd bytes."""
    if not stored.startswith(_PACKED):
        return stored
    stream = zlib.decompressobj()
    try:
        body = stream.decompress(stored, _LARGEST)
    except zlib.error as error:
        raise StoreError(f"a part of the journal is damaged: {error}") from error
    if not stream.eof:
        raise StoreError("a part of the journal is damaged: it is cut, or too large")
    return body


def sealed(text: str) -> bytes:
    """A text as a row holds it: with a checksum, since no name says what has to be in it."""
    body = text.encode("utf-8", "surrogatepass")
    if len(body) >= _ROW_WORTH_PACKING:
        body = packed(body, _ROW_WORTH_PACKING)
    return zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "big") + body


def unsealed(stored: bytes) -> str:
    """The inverse of `sealed`. Raises: `StoreError` for what is not what it was."""
    body = stored[_CHECKSUM_BYTES:]
    if zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "big") != stored[:_CHECKSUM_BYTES]:
        raise StoreError("a row of the journal is damaged: it does not fit its checksum")
    return as_text(unpacked(body))


def as_text(body: bytes) -> str:
    """The text of a body. Raises: `StoreError`."""
    try:
        return body.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise StoreError(f"a part of the journal is damaged: {error}") from error


def verified(name: str, stored: bytes | None) -> str:
    """The text that is stored under a name. Raises: `StoreError` when it is not what it was."""
    if stored is None:
        raise StoreError("a value is missing from the journal", hint="was its run removed?")
    body = unpacked(stored)
    if digest_of(body) != named(name):
        raise StoreError("a value in the journal is damaged: it does not fit its hash")
    return as_text(body)
