"""What the page is told of a run by what knows runs, in plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Journal, Numbered
from weft.serving.ui.effects import Find


@dataclass(frozen=True, slots=True)
class RunTiming:
    """Where the time of a run went, in seconds since its beginning.

    `bars` are (what the node did, from, to), `path` is the critical path: (node, what, from, to).
    `speed_up`: work over wall time, where that says something. `advice`: which nodes to speed up
    first, the seconds that it saves, and what part of the wall time that is.
    """

    bars: Mapping[NodeId, Sequence[tuple[str, float, float]]]
    path: Sequence[tuple[NodeId, str, float, float]]
    speed_up: float | None = None
    advice: tuple[str, float, float] | None = None


@dataclass(frozen=True, slots=True)
class RunValues:
    """What went into a run and what came of it, without its secrets. `missing` says why."""

    inputs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunReaders:
    """`unsettled` finds calls that a person has to say something of, `timing` where the time went.

    `values` reads what went in and came out of a run; all of them block.
    """

    unsettled: Find
    timing: Callable[[Iterable[Numbered]], RunTiming]
    values: Callable[[Journal, RunId], RunValues]
