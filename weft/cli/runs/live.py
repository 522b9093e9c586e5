"""Goes on with a recorded run, or with a part of it, live: under the settings that it began with.

Does not know what of it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weft.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from weft.cli.session import UnderWay, Wishes
    from weft.core.events import Listener
    from weft.core.ports.journal import Journal, RunHeader
    from weft.workflow.unit import Unit

Prepare = Callable[[Mapping[str, Any]], "UnderWay"]
"""Makes the run, with these of its `RunSettings`."""


async def run_live(
    prepare: Prepare, header: RunHeader, unit: Unit, wishes: Wishes, journal: Journal
) -> ExitCode:
    """Run to the end what `prepare` makes of `unit`, and print what is asked for.

    Its models decode, and its results are kept, as those of the run that `header` is of.
    """
    from weft.cli.session import Session, budget_of
    from weft.core.fakes import MemoryStore
    from weft.workflow import Models
    from weft.workflow.flow import Flow

    decode = header.settings.get("decode")
    store = MemoryStore() if header.settings.get("cache") is False else None
    async with Models(decode=decode if isinstance(decode, str) else None) as models:

        def start(listeners: Sequence[Listener]) -> UnderWay:
            return prepare({"listeners": listeners, "models": models, "store": store})

        session = Session(start, wishes, budget_of(Flow.of(unit)), journal=journal)
        return await session.run()
