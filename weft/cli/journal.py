"""The journal of a command: its options, its opening, and run references in printed commands.

Runs of servers are recorded only on request: what clients send is theirs, and a server has no end
at which a person looks at its disk.
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

    A named journal must exist, unless `make` is set. A read-only one may be opened `to_read`.
    Raises: `StoreError`.
    """
    from weft.workflow.runtime.journals import open_journal

    with closing(open_journal(place, make=make or not place, to_read=to_read)) as journal:
        yield journal


def tell_new_journal(place: str | None) -> None:
    """Print a line where a named file is about to become a journal. Raises: `StoreError`."""
    from weft.cli import console
    from weft.workflow.runtime.journals import new_journal_file

    if (file := new_journal_file(place)) is not None:
        text = f"there was no journal {clean(str(file))}: created it"
        console.stderr().print(text, style="yellow", soft_wrap=True)


def histories_at(place: str | None, *runs: str, salvage: bool = False) -> list[RunHistory]:
    """The records of `runs` in a journal; with `salvage` their readable parts.

    Raises: `UnknownReference`, `StoreError`.
    """
    from weft.workflow.history.run_history import find_run, read_history, salvage_history

    read = salvage_history if salvage else read_history
    with journal_at(place, to_read=True) as journal:
        return [read(journal, find_run(journal, run)) for run in runs]


def run_reference(run: str, journal: str | None) -> str:
    """The run's id with this command's `--journal`; addresses of servers are hidden."""
    return clean(run) + journal_option(journal)


def journal_option(journal: str | None) -> str:
    """` --journal PATH`, if this command had one."""
    if journal is None:
        return ""
    return " --journal " + ("postgresql://..." if "://" in journal else shlex.quote(clean(journal)))


RecordJournal = Annotated[
    str | None,
    typer.Option(
        "--journal",
        metavar="PATH",
        help="Record runs there, a file or postgresql://...; with --durability alone in "
        "WEFT_JOURNAL or your data folder.",
    ),
]
RecordDurability = Annotated[
    str | None,
    typer.Option(
        "--durability",
        metavar="HOW",
        help="When what happens in runs is recorded: sync, async, exit or none. Without it: with "
        "--journal as each workflow says, else none.",
    ),
]


def recording_durability(journal: str | None, durability: str | None) -> Durability | None:
    """When runs are recorded; None: as each workflow says. Raises: `typer.BadParameter`."""
    if durability is None:
        return "none" if journal is None else None
    return how_durable(durability)


@contextmanager
def server_journal(
    place: str | None,
    durability: Durability | None,
    *,
    wanted: bool = False,
    lease_s: float | None = None,
) -> Iterator[Journal | None]:
    """The open journal of a server, if `durability` says that it records runs, or if `wanted`.

    Prints that it records: what is stored grows until it is pruned. Raises: `StoreError`.
    """
    if durability == "none" and not wanted:
        yield None
        return
    from weft.cli import console
    from weft.workflow.runtime.journals import open_journal

    if wanted:
        tell_new_journal(place)
    with closing(open_journal(place, lease_s=lease_s)) as journal:
        if durability != "none":
            here = journal_option(place)
            how = f"`weft runs{here}` lists them, `weft runs prune{here}` makes room"
            console.stderr().print(f"runs are recorded: {how}", style="dim", soft_wrap=True)
        yield journal
