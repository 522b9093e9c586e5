"""Options of a fleet. Every mechanism can be switched off here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Order = Literal["program", "arrival"]


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """The mechanisms and their bounds. By default all of them are on.

    order               "program": calls of programs that end soonest go first (see `order`);
                        "arrival": first come, first served, and requests keep their priorities
    seconds_per_weight  how long one unit of a node's weight takes
    patience            seconds of waiting that outweigh one second of remaining work. 0 is first
                        come first served, a large number shortest remaining work first. Bounds the
                        delay of a long program: only programs that begin within `patience` times
                        its own remaining work can overtake it
    warm_prefix         calls wait while another computes the prefix they share
    min_shared_chars    shorter shared prefixes are not worth a wait or a detour
    hold_s              longest wait for another call's prefill; bounds what an urgent call loses
                        to one that the server itself delays
    affinity            calls of one program, or of one prefix, go to the same replica
    slack               how many more calls that replica may run than the idlest one before a call
                        goes elsewhere. A call also goes elsewhere when the replica is full and
                        another one would idle
    in_flight           most calls running on one replica; None: no bound
    max_waiting         most calls that wait here for a replica or for a prefix
    retries             how often a call is sent again when replicas are overloaded
    failover            how often a call moves on when its replica breaks; 0 also keeps broken
                        replicas in use
    backoff_s           first delay after an overload or between probes of a broken replica; doubles
    longest_backoff_s   bound of these delays. A longer `Retry-After` of the server takes precedence
    outage_s            how long calls wait when no replica is left

    Raises: `ValueError` for a value out of range.
    """

    order: Order = "program"
    seconds_per_weight: float = 1.0
    patience: float = 30.0
    warm_prefix: bool = True
    min_shared_chars: int = 1000
    hold_s: float = 10.0
    affinity: bool = True
    slack: int = 16
    in_flight: int | None = 64
    max_waiting: int = 10_000
    retries: int = 5
    failover: int = 3
    backoff_s: float = 0.5
    longest_backoff_s: float = 30.0
    outage_s: float = 60.0

    def __post_init__(self) -> None:
        if self.order not in ("program", "arrival"):
            raise ValueError(f"there is no order {self.order!r}: use program, or arrival")
        if self.in_flight is not None and self.in_flight < 1:
            raise ValueError(f"in_flight is {self.in_flight}: 1 or more, or None for no bound")
        for name in _COUNTS:
            value: int = getattr(self, name)
            if value < 0:
                raise ValueError(f"{name} is {value}, which is less than none")
        for name in _AMOUNTS:
            amount: float = getattr(self, name)
            if not 0 <= amount < math.inf:
                raise ValueError(f"{name} is {amount}: it has to be a number from 0")

    @classmethod
    def plain(cls) -> FleetOptions:
        """All mechanisms off: requests go at once to the replica that runs the fewest."""
        return cls(
            order="arrival",
            warm_prefix=False,
            affinity=False,
            in_flight=None,
            retries=0,
            failover=0,
        )


_COUNTS = ("min_shared_chars", "slack", "max_waiting", "retries", "failover")
_AMOUNTS = (
    "seconds_per_weight",
    "patience",
    "hold_s",
    "backoff_s",
    "longest_backoff_s",
    "outage_s",
)
