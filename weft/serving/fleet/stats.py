"""Counts of what a fleet has done, and the fleets of this process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Protocol
from weakref import WeakSet


@dataclass(slots=True)
class FleetStats:
    """Counts since the fleet was made.

    sent              requests that went to a replica, of all kinds
    resumed           of these, streams that continued from the tokens of a broken one
    repeated          of these, sent again from the start after something had been delivered
    retried           calls sent again because a replica was overloaded
    moved             calls that left a broken replica
    warmed            prompts computed ahead by `warm`
    held_for_prefix   calls that waited for a prefix they share
    cancelled         calls that their caller closed
    timed_out         calls whose time was over
    received_tokens   token ids that came back, where replicas report them
    most_waiting      longest queue so far
    """

    sent: int = 0
    resumed: int = 0
    repeated: int = 0
    retried: int = 0
    moved: int = 0
    warmed: int = 0
    held_for_prefix: int = 0
    cancelled: int = 0
    timed_out: int = 0
    received_tokens: int = 0
    most_waiting: int = 0

    def __add__(self, other: FleetStats) -> FleetStats:
        """The sum; of `most_waiting` the maximum."""
        values = {
            field.name: getattr(self, field.name) + getattr(other, field.name)
            for field in fields(self)
        }
        values["most_waiting"] = max(self.most_waiting, other.most_waiting)
        return FleetStats(**values)


@dataclass(frozen=True, slots=True)
class FleetLoad:
    """Current load of a fleet: waiting and running calls, and replicas by state."""

    waiting: int
    running: int
    usable: int
    resting: int
    broken: int


class CountedFleet(Protocol):
    """A fleet, as far as metrics need it."""

    @property
    def model(self) -> str:
        """The name of its model."""

    def stats(self) -> FleetStats:
        """Counts so far."""

    def load(self) -> FleetLoad:
        """Current load."""


_OPEN: WeakSet[CountedFleet] = WeakSet()
_ENDED: dict[str, FleetStats] = {}


def fleet_begins(fleet: CountedFleet) -> None:
    """Add `fleet` to those of this process."""
    _OPEN.add(fleet)


def fleet_ends(fleet: CountedFleet) -> None:
    """Keep only the counts of `fleet`."""
    if fleet in _OPEN:
        _OPEN.discard(fleet)
        _ENDED[fleet.model] = _ENDED.get(fleet.model, FleetStats()) + fleet.stats()


def open_fleets() -> Iterator[CountedFleet]:
    """The open fleets of this process."""
    yield from list(_OPEN)


def ended_fleets() -> dict[str, FleetStats]:
    """Counts of closed fleets by model name; a copy."""
    return dict(_ENDED)
