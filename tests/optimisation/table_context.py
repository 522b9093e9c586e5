"""A `ProposalContext` over a flow with function models, and a proposer model that is a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import weft
from weft.core.errors import ModelError
from weft.core.ports import ModelClient
from weft.evaluation.case import Case
from weft.optimisation.call_bound import call_bound
from weft.optimisation.candidates import Candidate
from weft.optimisation.edits import EditError
from weft.optimisation.options import patch_of
from weft.optimisation.propose.context import ObservedNode, ObservedRun
from weft.optimisation.table import OutcomeTable


class TableContext:
    """Runs through an `OutcomeTable`; nodes take the `seconds` that are given."""

    def __init__(
        self,
        flow: weft.Flow,
        models: Mapping[str, ModelClient],
        train: Sequence[Case] = (),
        *,
        needs: Mapping[str, tuple[str, ...]] | None = None,
        seconds: Mapping[str, float] | None = None,
        answer: Callable[[str, int], Any] | None = None,
    ) -> None:
        self.train, self.seed, self.calls = tuple(train), 7, 0
        self.asked: list[str] = []
        self._flow, self._models, self._answer = flow, models, answer
        self._needs, self._seconds = needs or {}, seconds or {}
        self._table = OutcomeTable()

    def flow(self, candidate: Candidate) -> Any:
        return patch_of(candidate).apply(self._flow)

    def allowed(self, candidate: Candidate) -> bool:
        try:
            self.flow(candidate)
        except EditError:
            return False
        return True

    def bound(self, candidate: Candidate, case: Case, replicate: int = 0) -> int:
        del replicate
        return call_bound(self.flow(candidate).unit, case.inputs) or 0

    async def observe(
        self, candidate: Candidate, cases: Sequence[Case], replicates: int = 1, first: int = 0
    ) -> list[ObservedRun]:
        found = []
        for case in cases:
            run = await self._table.run(self.flow(candidate), case.inputs, models=self._models)
            self.calls += run.spent.requests
            nodes = tuple(
                ObservedNode(name, "model", seconds=seconds, needs=self._needs.get(name, ()))
                for name, seconds in self._seconds.items()
            )
            found.append(ObservedRun(case, first, dict(run.result.outputs), 0.5, "wrong", nodes))
        return found

    async def ask(
        self, prompt: str, *, schema: Mapping[str, Any] | None = None, attempt: int = 0
    ) -> Any:
        if self._answer is None:
            raise ModelError("there is no proposer model")
        self.asked.append(prompt)
        self.calls += 1
        return self._answer(prompt, attempt)
