"""Opening a content store by its address: in weft, and on the workers of a cluster."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from weft.core.errors import StoreError
from weft.core.extras import optional_packages
from weft.core.ports.content import MAX_CONTENT_BYTES, ContentStore
from weft.durability.content_folder import FolderContentStore


@dataclass(frozen=True, slots=True)
class _Server:
    """Where the store of a scheme is implemented; `variables`: what it reads, by name."""

    module: str
    kind: str
    purpose: str
    variables: tuple[str, ...]


_SERVERS: Final = {
    "s3": _Server(
        "weft.workflow.content.s3",
        "S3ContentStore",
        "content on an S3-compatible server",
        (
            *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
            *("AWS_REGION", "AWS_ENDPOINT_URL"),
        ),
    ),
    "postgresql": _Server(
        "weft.workflow.content.postgres",
        "PostgresContentStore",
        "content on a server",
        ("PGPASSWORD", "PGPASSFILE"),
    ),
}
_ALIASES: Final = {"postgres": "postgresql"}


def is_address(place: str) -> bool:
    """Whether `place` is the address of a server, not a folder."""
    return "://" in place


def open_content(place: str, *, max_bytes: int = MAX_CONTENT_BYTES) -> ContentStore:
    """The content store at `place`: a folder, `s3://BUCKET/PREFIX` or `postgresql://HOST/NAME`.

    Nothing is connected or created before the first call. Raises: `StoreError`.
    """
    if not is_address(place):
        return FolderContentStore(place, max_bytes=max_bytes)
    server = _server_of(place)
    with optional_packages(server.purpose, StoreError):
        kind = getattr(import_module(server.module), server.kind)
    store: ContentStore = kind(place, max_bytes=max_bytes)
    return store


def variables_of(place: str) -> tuple[str, ...]:
    """Names of the variables, set here, that the store at `place` reads. Raises: `StoreError`."""
    if not is_address(place):
        return ()
    return tuple(name for name in _server_of(place).variables if name in os.environ)


def content_place(place: str | Path) -> str:
    """`place`, or its absolute path if it is a folder."""
    text = str(place)
    return text if is_address(text) else str(Path(text).expanduser().absolute())


def _server_of(place: str) -> _Server:
    scheme = place.partition("://")[0]
    found = _SERVERS.get(_ALIASES.get(scheme, scheme))
    if found is None:
        raise StoreError(
            "no content store has an address of that scheme",
            hint="a folder, s3://BUCKET/PREFIX or postgresql://HOST/NAME",
        )
    return found
