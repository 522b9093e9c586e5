"""Folders of servings for registry, leases and logs; only the user can read them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from platformdirs import user_state_path

from weft.core.errors import ServeError

_KEPT_LOGS = 20


def state_folder() -> Path:
    """`WEFT_STATE_DIR`, else the user's folder for state."""
    return Path(os.environ.get("WEFT_STATE_DIR") or user_state_path("weft")).expanduser()


def registry_folder() -> Path:
    """Folder with one file per serving."""
    return _private("servers")


def lease_folder(serving: str) -> Path:
    """Folder with one file per program that has a lease of the serving."""
    return _private("leases", serving)


def drafting_folder(serving: str) -> Path:
    """Folder with one socket per process of the serving that drafts."""
    return _private("drafting", serving)


def known_folder() -> Path:
    """Folder with one file of texts per model, for drafting."""
    return _private("known")


def log_folder(serving: str) -> Path:
    """Folder for the logs of the serving's processes."""
    return _private("logs", serving)


def forget(serving: str) -> None:
    """Remove the leases and sockets of a serving that ended. Its logs stay for diagnosis."""
    for kind in ("leases", "drafting"):
        shutil.rmtree(state_folder() / kind / serving, ignore_errors=True)


def prune_logs() -> None:
    """Delete all logs except those of the latest servings."""
    folders = [path for path in _private("logs").iterdir() if path.is_dir()]
    folders.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for old in folders[_KEPT_LOGS:]:
        shutil.rmtree(old, ignore_errors=True)


def _private(*names: str) -> Path:
    """A folder with access for the user only, created if missing. Raises: `ServeError`."""
    folder = state_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in names:
            folder = folder / name
            folder.mkdir(exist_ok=True, mode=0o700)
    except OSError as error:
        raise ServeError(
            f"cannot keep the state of servers in {folder}: {error.strerror or error}",
            hint="WEFT_STATE_DIR names another folder",
        ) from error
    return folder
