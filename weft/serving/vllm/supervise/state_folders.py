"""Where servings keep what they write: registry, leases and logs, for the user alone to read."""

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
    """One file for each serving."""
    return _private("servers")


def lease_folder(serving: str) -> Path:
    """One file for each program that needs the serving."""
    return _private("leases", serving)


def drafting_folder(serving: str) -> Path:
    """One socket for each process of the serving that drafts."""
    return _private("drafting", serving)


def known_folder() -> Path:
    """One file for each model: what was written, for who drafts."""
    return _private("known")


def log_folder(serving: str) -> Path:
    """What the serving's processes said."""
    return _private("logs", serving)


def forget(serving: str) -> None:
    """Remove the leases and sockets of a serving that is gone. Its logs stay: they say why."""
    for kind in ("leases", "drafting"):
        shutil.rmtree(state_folder() / kind / serving, ignore_errors=True)


def prune_logs() -> None:
    """Keep the logs of the latest servings only."""
    folders = [path for path in _private("logs").iterdir() if path.is_dir()]
    folders.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for old in folders[_KEPT_LOGS:]:
        shutil.rmtree(old, ignore_errors=True)


def _private(*names: str) -> Path:
    """A folder for the user alone, made when it is missing. Raises: `ServeError`."""
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
