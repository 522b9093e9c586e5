"""How a printed command names a run, so that it works as it stands. Looks nothing up."""

from __future__ import annotations

import shlex

from weft.cli.text import clean


def again(run: str, journal: str | None) -> str:
    """The run, and the `--journal` that this command had; a server's may hold a password."""
    return clean(run) + in_journal(journal)


def in_journal(journal: str | None) -> str:
    """` --journal PATH`, where this command had one."""
    if journal is None:
        return ""
    return " --journal " + ("postgresql://..." if "://" in journal else shlex.quote(clean(journal)))
