"""How long the stretches of a simulated run take: as recorded, or drawn from what is alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from random import Random

from weft.core.ids import NodeId
from weft.engine.critical import family
from weft.engine.simulate.change import Change
from weft.engine.simulate.script import CallKind, Scripted, Stretch, Work

_FEWEST = 3
_Alike = tuple[CallKind, str, str]


class Times:
    """The times of one simulated run. Those of the same tool, model or family are alike."""

    def __init__(self, scripts: Iterable[Scripted], change: Change) -> None:
        self._change = change
        self._random = Random(change.seed)  # noqa: S311 - a simulation
        self._alike: defaultdict[_Alike, list[float]] = defaultdict(list)
        if change.resample:
            for script in scripts:
                for attempt in script.attempts:
                    for step in attempt.steps:
                        if isinstance(step, Work):
                            self._learn(script.info.id, step)

    def of(self, node: NodeId, work: Work) -> float:
        """Seconds that `work` of `node` takes."""
        drawn = work.stretches
        if self._change.resample:
            drawn = tuple(self._drawn(node, stretch) for stretch in drawn)
        return self._change.seconds(node, drawn)

    def _learn(self, node: NodeId, work: Work) -> None:
        for stretch in work.stretches:
            self._alike[_alike(node, stretch)].append(stretch.seconds)

    def _drawn(self, node: NodeId, stretch: Stretch) -> Stretch:
        known = self._alike[_alike(node, stretch)]
        if len(known) < _FEWEST:
            return stretch
        return Stretch(stretch.kind, stretch.name, self._random.choice(known))


def _alike(node: NodeId, stretch: Stretch) -> _Alike:
    return stretch.kind, stretch.name, family(node) if stretch.kind == "own" else ""
