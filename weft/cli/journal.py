"""The journal of a command: its options, how it is opened, and how a printed command names a run.

Runs of servers are recorded only on request: what clients send is theirs, and a server has no end
at which somebody looks at its disk.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.options import how_durable
from weft.cli.text import clean

if TYPE_CHECKING:
    from weft.core.ports.journal import Journal
    from weft.workflow.document.spec.settings import Durability
    from weft.workflow.history.run_history import RunHistory


@contextmanager
def journal_at(
    place: str | None, *, make: bool = False, to_read: bool = False
) -> Iterator[Journal]:
    """The journal that `--journal` names, or the user's own.

    One that is named has to be there, unless the command is to `make` it. One that may not be
    written will do for a command that opens it `to_read`. Raises: `StoreError`.
    """
    from weft.workflow.runtime.journals import open_journal

    with closing(open_journal(place, make=make or not place, to_read=to_read)) as journal:
        yield journal


def stories_at(place: str | None, *runs: str, salvage: bool = False) -> list[RunHistory]:
    """What that journal has of each of `runs`; with `salvage` what is sound of it.

    Raises: `UnknownReference`, `StoreError`.
    """
    from weft.workflow.history.run_history import find_run, read_history, salvage_history

    read = salvage_history if salvage else read_history
    with journal_at(place, to_read=True) as journal:
        return [read(journal, find_run(journal, run)) for run in runs]


def run_reference(run: str, journal: str | None) -> str:
    """The run, and the `--journal` that this command had; a server's may hold a password."""
    return clean(run) + journal_option(journal)


def journal_option(journal: str | None) -> str:
    """` --journal PATH`, where this command had one."""
    if journal is None:
        return ""
    return " --journal " + ("postgresql://..." if "://" in journal else shlex.quote(clean(journal)))


KeptAt = Annotated[
    str | None,
    typer.Option(
        "--journal",
        metavar="PATH",
        help="Record runs there, a file or postgresql://...; with --durability alone in "
        "WEFT_JOURNAL or your data folder.",
    ),
]
KeptWhen = Annotated[
    str | None,
    typer.Option(
        "--durability",
        metavar="HOW",
        help="When what happens in runs is recorded: sync, async, exit or none. Without it: with "
        "--journal as each workflow says, else none.",
    ),
]


def when_kept(journal: str | None, durability: str | None) -> Durability | None:
    """When runs are recorded; None: as each workflow says. Raises: `typer.BadParameter`."""
    if durability is None:
        return "none" if journal is None else None
    return how_durable(durability)


@contextmanager
def server_journal(
    place: str | None, kept: Durability | None, *, wanted: bool = False
) -> Iterator[Journal | None]:
    """The journal of a server that records runs as `kept` says, or that is `wanted` anyway, open.

    It says that it records: what is stored grows until somebody prunes it. Raises: `StoreError`.
    """
    if kept == "none" and not wanted:
        yield None
        return
    from weft.cli import console
    from weft.workflow.runtime.journals import open_journal

    with closing(open_journal(place)) as journal:
        if kept != "none":
            here = journal_option(place)
            how = f"`weft runs{here}` lists them, `weft runs prune{here}` makes room"
            console.stderr().print(f"runs are recorded: {how}", style="dim", soft_wrap=True)
        yield journal
