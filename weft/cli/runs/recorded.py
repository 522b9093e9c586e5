"""What a command reads of recorded runs: the journal, open while it is needed, and runs in it.

Does not know what is done with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.core.ports.journal import Journal
    from weft.workflow.runs.story import Story


@contextmanager
def journal_at(
    place: str | None, *, make: bool = False, to_read: bool = False
) -> Iterator[Journal]:
    """The journal that `--journal` names, or the user's own.

    One that is named has to be there, unless the command is to `make` it. One that may not be
    written will do for a command that opens it `to_read`. Raises: `StoreError`.
    """
    from weft.workflow.journals import open_journal

    with closing(open_journal(place, make=make or not place, to_read=to_read)) as journal:
        yield journal


def stories_at(place: str | None, *runs: str, salvage: bool = False) -> list[Story]:
    """What that journal has of each of `runs`; with `salvage` what is sound of it.

    Raises: `UnknownReference`, `StoreError`.
    """
    from weft.workflow.runs.find import find_run
    from weft.workflow.runs.story import salvaged, story_of

    read = salvaged if salvage else story_of
    with journal_at(place, to_read=True) as journal:
        return [read(journal, find_run(journal, run)) for run in runs]
