"""Fetches pinned files from the Hugging Face hub.

Does not read the files, and does not trust them before their hashes are checked.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import httpx2

from weft.core.errors import CapabilityError
from weft.core.extras import optional_packages
from weft.serving.weights.catalogue import HubSource, PinnedFile, PullProgress, SourceFailed

_TIMEOUT = httpx2.Timeout(30.0, connect=3.0)


def fetch(
    source: HubSource,
    folder: Path,
    progress: PullProgress,
    *,
    transport: httpx2.BaseTransport | None = None,
) -> None:
    """Write the source's files into `folder`. Honours `HF_HUB_OFFLINE` and `HF_ENDPOINT`.

    Raises: `SourceFailed` when the hub is offline or unreachable, or sends something else.
    """
    with optional_packages("models from the hub", CapabilityError):
        from huggingface_hub import constants, hf_hub_url
    if constants.HF_HUB_OFFLINE:
        raise SourceFailed("HF_HUB_OFFLINE is set")
    total = sum(file.size for file in source.files)
    done = 0
    progress("hub", done, total)
    with httpx2.Client(transport=transport, timeout=_TIMEOUT, follow_redirects=True) as client:
        for file in source.files:
            url = hf_hub_url(source.repository, file.name, revision=source.revision)
            _download(client, url, file, folder / file.name, done, total, progress)
            done += file.size


def _download(
    client: httpx2.Client,
    url: str,
    file: PinnedFile,
    target: Path,
    before: int,
    total: int,
    progress: PullProgress,
) -> None:
    digest = hashlib.sha256()
    received = 0
    try:
        with client.stream("GET", url) as response, target.open("xb") as out:
            response.raise_for_status()
            for chunk in response.iter_bytes():
                received += len(chunk)
                if received > file.size:
                    break
                digest.update(chunk)
                out.write(chunk)
                progress("hub", before + received, total)
    except httpx2.HTTPError as error:
        raise SourceFailed(f"the hub did not send {file.name}: {error}", temporary=True) from error
    if received != file.size or digest.hexdigest() != file.sha256:
        raise SourceFailed(f"{file.name} from the hub is not the file that the catalogue pins")
