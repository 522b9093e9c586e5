"""One replica as the fleet sees it: how busy it is, whether it can be used, what it has cached."""

from __future__ import annotations

from weft.core.errors import ModelError
from weft.core.ports.clock import Timer
from weft.core.ports.model import ModelClient
from weft.serving.fleet.limit import Limit
from weft.serving.fleet.prefixes import Prefixes


class Replica:
    """State only: who changes it is written at each field.

    running     calls on it now; `admission`
    sent        calls sent to it so far; `admission`
    broken      why it is put aside, or None; `health`
    resting     runs while it asks not to be called, else None; `health`
    overloads   refusals since the last success; `health`
    """

    def __init__(self, client: ModelClient, in_flight: int | None, name: str) -> None:
        self.client = client
        self.name = name
        self.limit = Limit(in_flight)
        self.prefixes = Prefixes()
        self.running = 0
        self.sent = 0
        self.broken: ModelError | None = None
        self.resting: Timer | None = None
        self.overloads = 0

    @property
    def usable(self) -> bool:
        """True when calls may be sent to it, if there is room."""
        return self.broken is None and self.resting is None

    @property
    def has_room(self) -> bool:
        """True when one more call is within its limit."""
        return self.running + 1 <= self.limit.calls

    @property
    def load(self) -> tuple[int, int]:
        """The smaller the idler; of equally busy ones the one that has had less to do."""
        return self.running, self.sent
