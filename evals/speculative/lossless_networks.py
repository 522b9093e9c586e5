"""Whether decoders whose drafts a network writes are lossless: as `lossless`, for the slow ones.

Few of the target's layers draft, a few tokens at a time, and answers are short: what is kept does
not depend on it, and the time does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from evals.planning.effort import Skipped
from evals.speculative.local import SLOW
from evals.speculative.lossless import rows_of
from evals.speculative.systems import System, systems

OPTIONS: Final = (("layers", 4), ("num_speculative_tokens", 3))
"""Four of the target's thirty layers."""
TOKENS: Final = 8


def rows(quick: bool) -> list[dict[str, Any]]:
    """All rows. Raises: `Skipped` in a hurry, or where the model is not on this machine."""
    if quick:
        raise Skipped("in a hurry: drafting networks take over an hour")
    return rows_of(wanted(), quick, TOKENS)


def wanted() -> list[System]:
    """The decoders with drafting networks, each with `OPTIONS`."""
    return [
        replace(one, spec=replace(one.spec, options=OPTIONS))
        for one in systems()
        if one.name in SLOW
    ]
