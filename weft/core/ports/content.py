"""The content store port: immutable bytes under their SHA-256 digests, for code and large values.

A digest is all that travels between processes and into journals. A `ResultStore` is something else:
values under keys that others chose, which may be overwritten and expire.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final, NewType, Protocol

from weft.core.errors import ContentMismatch, ContentTooLarge, StoreError

ContentDigest = NewType("ContentDigest", str)
"""`sha256:` and 64 hexadecimal digits in lower case."""
MAX_CONTENT_BYTES: Final = 256 * 1024 * 1024
"""The default limit of one content; it passes through memory whole."""
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_SHOWN: Final = 80


class ContentStore(Protocol):
    """Stores bytes by their digest. Content never changes, so that any number of processes may
    write and read it at once.
    """

    async def put(self, content: bytes) -> ContentDigest:
        """Store `content`, and return its digest once it is durable.

        Repetition is harmless, and repairs a stored copy that is damaged.
        Raises: `ContentTooLarge`, `StoreError`.
        """

    async def get(self, digest: str) -> bytes:
        """The content of that digest, verified against it.

        Raises: `ContentNotFound`, `ContentMismatch` where the stored copy is damaged,
        `ContentTooLarge`, `StoreError`; also for a text that is no digest.
        """

    async def has(self, digest: str) -> bool:
        """Whether content is stored under that digest; it is not read. Raises: `StoreError`."""

    async def aclose(self) -> None:
        """Close connections. Harmless when repeated."""


def digest_of_content(content: bytes) -> ContentDigest:
    """The digest under which every store keeps `content`."""
    return ContentDigest(f"sha256:{sha256(content).hexdigest()}")


def content_digest(text: str) -> ContentDigest:
    """`text` as a digest, so that it may become part of a path. Raises: `StoreError`."""
    if not _DIGEST.fullmatch(text):
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        raise StoreError(
            f"{shown!r} is no digest of content", hint="sha256: and 64 lower-case hex digits"
        )
    return ContentDigest(text)


def verified_content(digest: str, content: bytes, where: str) -> bytes:
    """`content`, read from the store `where`. Raises: `ContentMismatch`."""
    if digest_of_content(content) != digest:
        raise ContentMismatch(
            f"{where} has damaged content under {digest}", hint="storing it again repairs it"
        )
    return content


def check_content_size(size_bytes: int, max_bytes: int, where: str) -> None:
    """Raises: `ContentTooLarge` where content has more bytes than the store `where` takes."""
    if size_bytes > max_bytes:
        message = f"content of {size_bytes} bytes is too large for {where}: {max_bytes} at most"
        raise ContentTooLarge(message, hint="store it in parts, or open the store with a limit")
