"""Where in a run the code is that is running now, for what it calls outside.

Knows no journal: who records calls looks here for their place.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from weft.core.frozen import constructor
from weft.core.ids import NodeId


@dataclass(frozen=True, slots=True)
class Place:
    """An attempt (from 1) of a node's work, or what it goes on with after a pause."""

    node: NodeId
    attempt: int


place_of = constructor(Place)
PLACE: Final[ContextVar[Place | None]] = ContextVar("weft_place", default=None)
"""The place of code that runs outside of a run. See `weft.engine.effects.current_place`."""
