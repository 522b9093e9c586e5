"""What a fleet has done so far, in plain counts, and which fleets there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Protocol
from weakref import WeakSet


@dataclass(slots=True)
class FleetStats:
    """Counts since the fleet was made.

    sent              requests that went to a replica, of all kinds
    resumed           of these, streams that went on from the tokens of a broken one
    repeated          of these, asked again from the start after something had been delivered
    retried           calls asked again because a replica was overloaded
    moved             calls that a broken replica gave back
    warmed            prompts computed ahead by `warm`
    held_for_prefix   calls that waited for a prefix they share
    cancelled         calls that their caller closed
    timed_out         calls whose time was over
    received_tokens   token ids that came back, where replicas tell
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
        """Both together; of queues the longer one."""
        values = {
            field.name: getattr(self, field.name) + getattr(other, field.name)
            for field in fields(self)
        }
        values["most_waiting"] = max(self.most_waiting, other.most_waiting)
        return FleetStats(**values)


@dataclass(frozen=True, slots=True)
class FleetLoad:
    """A fleet now: calls that wait and run, and replicas by what can be done with them."""

    waiting: int
    running: int
    usable: int
    resting: int
    broken: int


class CountedFleet(Protocol):
    """A fleet, as far as it is counted."""

    @property
    def model(self) -> str:
        """The name of its model."""

    def stats(self) -> FleetStats:
        """What it has done so far."""

    def load(self) -> FleetLoad:
        """What it does now."""


_OPEN: WeakSet[CountedFleet] = WeakSet()
_ENDED: dict[str, FleetStats] = {}


def fleet_begins(fleet: CountedFleet) -> None:
    """Count `fleet` among those of this process."""
    _OPEN.add(fleet)


def fleet_ends(fleet: CountedFleet) -> None:
    """Keep its counts only."""
    if fleet in _OPEN:
        _OPEN.discard(fleet)
        _ENDED[fleet.model] = _ENDED.get(fleet.model, FleetStats()) + fleet.stats()


def open_fleets() -> Iterator[CountedFleet]:
    """The fleets of this process that have not been closed."""
    yield from list(_OPEN)


def ended_fleets() -> dict[str, FleetStats]:
    """What closed fleets had done, by the name of the model; a copy."""
    return dict(_ENDED)
