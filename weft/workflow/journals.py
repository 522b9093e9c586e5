"""Where runs are recorded: the journal that somebody names, or the user's own.

Knows which kinds of journals there are; opens nothing but the one that is asked for.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

from platformdirs import user_data_path

from weft.core.errors import StoreError
from weft.core.extras import optional_packages
from weft.core.ports.journal import Journal
from weft.engine.journal import SqliteJournal

VARIABLE = "WEFT_JOURNAL"
"""Names the journal of those who are told of no other: a path or an address."""
_SERVERS = ("postgresql://", "postgres://")


def open_journal(
    where: str | Path | None = None, *, make: bool = True, to_read: bool = False
) -> Journal:
    """The journal at a path, or at the address of a PostgreSQL server; whoever asks closes it.

    None: what the environment variable `WEFT_JOURNAL` names, else `journal.sqlite` in `WEFT_HOME`
    or the user's data folder. A file that is missing is made, unless `make` is False. One that may
    not be written is refused, unless it is opened `to_read`: then only what writes to it is.

    Raises: `StoreError`.
    """
    place = str(where or os.environ.get(VARIABLE) or "")
    if place.startswith(_SERVERS):
        return _on_server(place)
    path = Path(place) if place else default_path()
    _check_file(path, make)
    try:
        if make:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        hint = f"name another journal in {VARIABLE}, or run with durability none"
        said = f"there is no folder {path.parent} for a journal: {error.strerror}"
        raise StoreError(said, hint=hint) from error
    return SqliteJournal(path, to_read=to_read)


def file_of_journal() -> Path | None:
    """The file of the journal that `open_journal` opens for who names none; None: on a server."""
    place = os.environ.get(VARIABLE) or ""
    if place.startswith(_SERVERS):
        return None
    return (Path(place) if place else default_path()).absolute()


def default_path() -> Path:
    """The journal of who names none."""
    return Path(os.environ.get("WEFT_HOME") or user_data_path("weft")) / "journal.sqlite"


def _check_file(path: Path, make: bool) -> None:
    try:
        is_folder, is_there = path.is_dir(), path.exists()
    except OSError as error:
        hint = "may this user enter that folder?"
        raise StoreError(f"the journal {path}: {error.strerror}", hint=hint) from error
    if is_folder:
        hint = f"name a file, such as {path / 'journal.sqlite'}"
        raise StoreError(f"the journal {path} is a folder", hint=hint)
    if not make and not is_there:
        hint = "is the path right? `weft run FILE --journal PATH` begins one there"
        raise StoreError(f"there is no journal {path}", hint=hint)


def _on_server(address: str) -> Journal:
    with optional_packages("a journal on a server", StoreError):
        module = import_module("weft.workflow.postgres")
    journal: Journal = module.PostgresJournal(address)
    return journal
