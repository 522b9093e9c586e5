"""Opening a content store by its address, or the default one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from weft.agents.user_folder import user_folder
from weft.core.ports.content import MAX_CONTENT_BYTES, ContentStore
from weft.durability.content_address import open_content

VARIABLE: Final = "WEFT_CONTENT"
"""The environment variable with the default content store: a folder or an address."""


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
    return open_content(place, max_bytes=max_bytes)
