"""Whether the runs of a server are recorded: options, and the journal. By default they are not.

What clients send is theirs, and a server has no end at which somebody looks at its disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.commands.options import how_durable
from weft.cli.runs.again import in_journal

if TYPE_CHECKING:
    from weft.core.ports.journal import Journal
    from weft.workflow.document.settings import Durability

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
    from weft.workflow.journals import open_journal

    with closing(open_journal(place)) as journal:
        if kept != "none":
            here = in_journal(place)
            how = f"`weft runs{here}` lists them, `weft runs prune{here}` makes room"
            console.stderr().print(f"runs are recorded: {how}", style="dim", soft_wrap=True)
        yield journal
