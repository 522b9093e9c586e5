"""How a graph is run, as opposed to what it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from weft.engine.node import Limit

MAX_NODES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`max_concurrency`: works that run at once (None: no limit); `limits`: per resource class.

    `deadline_s`: the run ends then, with what it has. `limit`: the run's budget. `seed`: retry
    jitter is drawn from it. `grace_s`: how long the end of the run waits for cancelled code.
    `max_nodes`: so many nodes the run has at most, all expansions included (None: no limit).
    """

    max_concurrency: int | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    deadline_s: float | None = None
    limit: Limit | None = None
    seed: int = 0
    grace_s: float = 1.0
    max_nodes: int | None = MAX_NODES

    @property
    def slots(self) -> dict[str, int]:
        """The slots of each resource class, and under "" those of all works together."""
        general = {} if self.max_concurrency is None else {"": self.max_concurrency}
        return {**self.limits, **general}
