"""What scheduler and runner exchange: signals in, commands (and events) out. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from weft.core.errors import Failure, WeftError
from weft.core.events import Event
from weft.core.ids import NodeId
from weft.engine.graph.node import Inputs, NodeFn
from weft.engine.scheduler.resume_state import RestoredNode
from weft.engine.scheduler.state import NodeState

TimerKind = Literal["timeout", "retry", "budget", "deadline"]


@dataclass(slots=True)
class Returned:
    """The node function that `state` started at `epoch` returned `value`, or the cache had it."""

    state: NodeState
    epoch: int
    value: Any
    cached: bool = False


class Raised(NamedTuple):
    """The node function that `state` started at `epoch` raised."""

    state: NodeState
    epoch: int
    error: WeftError


class TimerFired(NamedTuple):
    """A timer fired. `state` is None for the run's own."""

    state: NodeState | None
    epoch: int
    kind: TimerKind


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """`node` (None: the whole run) is to end."""

    reason: str
    node: NodeId | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """A person answered the question of `node`."""

    node: NodeId
    value: Any


@dataclass(frozen=True, slots=True)
class JournalLost:
    """Nothing can be recorded any more: the run ends, and can be resumed from there."""

    failure: Failure


Signal = Returned | Raised | TimerFired | CancelRequested | Answered | JournalLost


def declared_order(signal: Signal) -> int:
    """Orders signals of one step: those without a node first, then by the order of their nodes."""
    if isinstance(signal, Returned | Raised):
        return signal.state.order
    if isinstance(signal, TimerFired) and signal.state is not None:
        return signal.state.order
    return -1


@dataclass(slots=True)
class Start:
    """Run `work(context, argument)` and report under `epoch`."""

    state: NodeState
    epoch: int
    work: NodeFn
    argument: Any


class Restore(NamedTuple):
    """Compute the digest of `state` with these inputs, find its history, and report both."""

    state: NodeState
    argument: Inputs


class RestoreResult(NamedTuple):
    """The answer to a `Restore`. `digest` identifies the node function and its inputs."""

    state: NodeState
    argument: Inputs
    digest: str
    known: RestoredNode | None


class Stop(NamedTuple):
    """Cancel what runs for `state`; its result is ignored."""

    state: NodeState


class SetTimer(NamedTuple):
    """Send `TimerFired(state, epoch, kind)` after `delay_s`."""

    state: NodeState | None
    epoch: int
    kind: TimerKind
    delay_s: float


class ClearTimers(NamedTuple):
    """Clear the timers of `state`."""

    state: NodeState


Command = Start | Restore | Stop | SetTimer | ClearTimers | Event
