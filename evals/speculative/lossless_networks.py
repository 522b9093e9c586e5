"""Whether decoders whose drafts a network writes are lossless: as `lossless`, for the slow ones."""

from __future__ import annotations

from typing import Any

from evals.planning.effort import Skipped
from evals.speculative.local import SLOW
from evals.speculative.lossless import rows_of
from evals.speculative.systems import systems


def rows(quick: bool) -> list[dict[str, Any]]:
    """All rows. Raises: `Skipped` in a hurry, or where the model is not on this machine."""
    if quick:
        raise Skipped("in a hurry: drafting networks take over an hour")
    return rows_of([one for one in systems() if one.name in SLOW], quick)
