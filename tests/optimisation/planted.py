"""A small program with planted effects, as an evaluator: a pure function of settings and case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from weft.optimisation.candidates import Candidate, CaseId, CaseOutcome

KNOBS = {"draft.prompt": ("seed", "b", "c"), "draft.demos": (0, 4), "solve.order": ("x", "y")}
BASELINE = Candidate.of({knob: options[0] for knob, options in KNOBS.items()})


class PlantedEvaluator:
    """Two calls a case; the first one's outcome depends on `draft` alone, and is kept."""

    def __init__(
        self,
        effects: Mapping[tuple[str, object], float],
        *,
        base: float = 0.4,
        canary: tuple[str, object] | None = None,
        seed: int = 0,
    ) -> None:
        self.effects, self.base, self.canary, self.seed = effects, base, canary, seed
        self.calls = 0
        self.seen: set[tuple[object, ...]] = set()

    def chance(self, candidate: Candidate) -> float:
        total = self.base + sum(self.effects.get(each, 0.0) for each in candidate.settings)
        return min(1.0, max(0.0, total))

    def calls_needed(self, candidate: Candidate, cases: Sequence[CaseId], replicates: int) -> int:
        return sum(node not in self.seen for case in cases for node in self._nodes(candidate, case))

    async def outcomes(
        self, candidate: Candidate, cases: Sequence[CaseId], replicates: int
    ) -> list[CaseOutcome]:
        return [self._outcome(candidate, case) for case in cases]

    def _outcome(self, candidate: Candidate, case: CaseId) -> CaseOutcome:
        fresh = [node for node in self._nodes(candidate, case) if node not in self.seen]
        self.seen.update(fresh)
        self.calls += len(fresh)
        chance = self.chance(candidate)
        if isinstance(case, str) and case.startswith("canary"):
            chance = 0.8 if self.canary in candidate.settings else 0.05
        drawn = Random(f"{self.seed} {case} {candidate.settings}").random()
        return CaseOutcome(float(drawn < chance), 1.0, 0.1, 10, len(fresh))

    @staticmethod
    def _nodes(candidate: Candidate, case: CaseId) -> list[tuple[object, ...]]:
        draft = tuple(each for each in candidate.settings if each[0].startswith("draft"))
        return [(case, draft), (case, candidate.settings)]
