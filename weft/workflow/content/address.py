"""Opening a content store by its address."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Final

from weft.agents.user_folder import user_folder
from weft.core.errors import StoreError
from weft.core.extras import optional_packages
from weft.core.ports.content import MAX_CONTENT_BYTES, ContentStore
from weft.durability.content_folder import FolderContentStore

VARIABLE: Final = "WEFT_CONTENT"
"""The environment variable with the default content store: a folder or an address."""
_SERVERS: Final = {
    "s3": ("weft.workflow.content.s3", "S3ContentStore", "content on an S3-compatible server"),
    "postgresql": ("weft.workflow.content.postgres", "PostgresContentStore", "content on a server"),
}
_ALIASES: Final = {"postgres": "postgresql"}


def open_content_store(
    address: str | Path | None = None, *, max_bytes: int = MAX_CONTENT_BYTES
) -> ContentStore:
    """The content store at `address`: a folder, `s3://BUCKET/PREFIX` or `postgresql://HOST/NAME`.

    None: the environment variable `WEFT_CONTENT`, else `content` in the user's data folder.
    An address has no credentials, so that it may be logged and sent: a store reads them from the
    environment (`AWS_ACCESS_KEY_ID`, `PGPASSWORD`, ...). `max_bytes` limits one content. Nothing is
    connected or created before the first call. Raises: `StoreError`.
    """
    place = str(address or os.environ.get(VARIABLE) or user_folder() / "content")
    scheme, is_address, _ = place.partition("://")
    if not is_address:
        return FolderContentStore(place, max_bytes=max_bytes)
    found = _SERVERS.get(_ALIASES.get(scheme, scheme))
    if found is None:
        raise StoreError(
            "no content store has an address of that scheme",
            hint="a folder, s3://BUCKET/PREFIX or postgresql://HOST/NAME",
        )
    module, name, purpose = found
    with optional_packages(purpose, StoreError):
        kind = getattr(import_module(module), name)
    store: ContentStore = kind(place, max_bytes=max_bytes)
    return store
