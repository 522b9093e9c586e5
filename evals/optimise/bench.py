"""One study's model behind a cache by node: every system runs on it, and pays for fresh calls."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from evals.optimise.planted import _SEEN as SEEN
from evals.optimise.planted import CANDIDATES, KNOBS, Array, PlantedModel
from weft.optimisation.candidates import Candidate, CaseId, CaseOutcome, Proposal, SearchState

COMPONENTS = ("facts", "plan", "answer")
Reuse: TypeAlias = Literal["node", "candidate", "none"]


class Bench:
    """Runs candidates on cases. Counts model calls whose inputs are new (`calls`).

    `reuse`: of calls with equal inputs ("node"), of a whole candidate on a case ("candidate"), or
    none at all.
    """

    def __init__(self, model: PlantedModel, reuse: Reuse = "node") -> None:
        self.model, self.reuse, self.calls = model, reuse, 0
        self._done: dict[Hashable, Array] = {}
        self._kept: dict[Candidate, Array] = {}

    def needed(self, candidate: Candidate, cases: Sequence[int]) -> Array:
        """Fresh calls of each case, if it ran now."""
        found = np.zeros(len(cases))
        for node in self._nodes(candidate):
            done = None if self.reuse == "none" else self._done.get(node)
            found += 1 if done is None else 1 - done[list(cases)]
        return found

    def _nodes(self, candidate: Candidate) -> list[tuple[object, ...]]:
        nodes = self.model.nodes(candidate)
        return nodes if self.reuse == "node" else [(*node, candidate) for node in nodes]

    def scores(self, candidate: Candidate, cases: Sequence[int]) -> tuple[Array, Array]:
        """Scores and fresh calls of each case."""
        at, fresh = list(cases), self.needed(candidate, cases)
        for node in self._nodes(candidate):
            self._done.setdefault(node, np.zeros(SEEN))[at] = 1
        kept = self._kept.setdefault(candidate, np.full(SEEN, np.nan))
        now = self.model.score(candidate, self.calls >= self.model.planted.drift[0])[at]
        kept[at] = np.where(np.isnan(kept[at]), now, kept[at])
        self.calls += int(fresh.sum())
        return kept[at], fresh

    def known(self, candidate: Candidate, cases: Sequence[int]) -> Array:
        """Scores that were paid for already."""
        return self._kept[candidate][list(cases)]

    def calls_needed(self, candidate: Candidate, cases: Sequence[CaseId], replicates: int) -> int:
        """For weft's search."""
        return int(self.needed(candidate, cases).sum()) * replicates  # type: ignore[arg-type]

    async def outcomes(
        self, candidate: Candidate, cases: Sequence[CaseId], replicates: int
    ) -> list[CaseOutcome]:
        """For weft's search; the planted model has one replicate."""
        assert replicates == 1
        scores, fresh = self.scores(candidate, cases)  # type: ignore[arg-type]
        seconds = self.model.seconds(candidate)[list(cases)]  # type: ignore[call-overload]
        cost = self.model.cost(candidate)
        return [
            CaseOutcome(score, time, cost, 0, int(calls))
            for score, time, calls in zip(
                scores.tolist(), seconds.tolist(), fresh.tolist(), strict=True
            )
        ]


@dataclass
class Reflector:
    """A scripted model that reads failures and proposes one edit: the right one with chance `q`,
    where the component has a fault; otherwise any other setting of the component.
    """

    bench: Bench
    q: float
    random: np.random.Generator
    calls: int = 2

    def edit(self, parent: Candidate, component: str | None = None) -> Candidate:
        """One changed setting, for one call."""
        self.bench.calls += 1
        own, best = dict(parent.settings), dict(self.bench.model.best.settings)
        knobs = [knob for knob in KNOBS if component is None or knob.startswith(component)]
        faults = [knob for knob in knobs if own[knob] != best[knob]]
        if faults and self.random.random() < self.q:
            knob = str(self.random.choice(faults))
            return parent.replace(knob, best[knob])
        knob = str(self.random.choice(knobs))
        others = [option for option in KNOBS[knob] if option != own[knob]]
        return parent.replace(knob, str(self.random.choice(others)))

    async def propose(self, state: SearchState) -> Proposal:
        """Two edits of the best candidate, for weft's search."""
        return Proposal([self.edit(state.best) for _ in range(self.calls)], self.calls)


def random_candidate(random: np.random.Generator) -> Candidate:
    """Any of all candidates."""
    return CANDIDATES[int(random.integers(len(CANDIDATES)))]
