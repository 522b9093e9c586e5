"""Whether decoders whose drafts a network writes are lossless: as `lossless`, for the slow ones.

Few of the target's layers draft: what is kept does not depend on it, and the time does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from evals.planning.effort import Skipped
from evals.speculative.local import SLOW
from evals.speculative.lossless import rows_of
from evals.speculative.systems import System, systems

LAYERS: Final = 4
"""Of the target's thirty."""


def rows(quick: bool) -> list[dict[str, Any]]:
    """All rows. Raises: `Skipped` in a hurry, or where the model is not on this machine."""
    if quick:
        raise Skipped("in a hurry: drafting networks take over an hour")
    return rows_of(wanted(), quick)


def wanted() -> list[System]:
    """The decoders with drafting networks, each with `LAYERS` of the target as its draft."""
    return [
        replace(one, spec=replace(one.spec, options=(("layers", LAYERS),)))
        for one in systems()
        if one.name in SLOW
    ]
