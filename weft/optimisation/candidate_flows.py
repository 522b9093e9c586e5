"""Candidates as workflows: patched, checked, and composed to evaluations of one case each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from weft.engine.analysis.trace import Trace
from weft.engine.graph.node import MODEL_RETRY
from weft.evaluation.case import Case, seed_of_case
from weft.evaluation.notes import NOTES
from weft.evaluation.program import CASES, ITEMS, RUN, EvaluationProgram, judge_name
from weft.evaluation.record import evaluation_of
from weft.evaluation.result import CaseResult
from weft.optimisation.call_bound import call_bound
from weft.optimisation.candidates import Candidate
from weft.optimisation.edits.error import EditError
from weft.optimisation.edits.patch import AnyFlow, Patch, document_digest
from weft.optimisation.leaks import LeakScan, texts_of
from weft.optimisation.options import patch_of
from weft.optimisation.result import Leak
from weft.workflow import Flow
from weft.workflow.document.rewrite import plain_document

PLACE = f"{CASES}[0]/{RUN}"
"""The workflow under test, in the evaluation of one case."""


@dataclass(frozen=True, slots=True)
class CandidateFlow:
    """A document of candidates. `flow`: the patched workflow; `evaluation`: it and the metrics, for
    an item of an evaluation.
    """

    digest: str
    flow: AnyFlow
    evaluation: AnyFlow


@dataclass
class CandidateFlows:
    """Makes the workflow of each candidate once; equal documents are one.

    `program`: the evaluation of the workflow as it is. `calls_per_case`: the most model calls of a
    case where the document does not say it.
    """

    program: EvaluationProgram
    calls_per_case: int
    cases: Sequence[Case] = ()
    """Of all splits: what edits show of dev and held_out is a leak, and they are refused."""
    leaks: list[Leak] = field(default_factory=list)
    _flows: dict[Candidate, CandidateFlow | EditError] = field(default_factory=dict)
    _by_digest: dict[str, CandidateFlow] = field(default_factory=dict)
    _bounds: dict[tuple[str, str, bool], int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.base: AnyFlow = Flow.of(self.program.unit)
        self._scan = LeakScan(self.cases)
        written = plain_document(self.base.document)
        written.pop("optimise", None)  # options of knobs are not in the workflow yet
        self._before = tuple(texts_of(written))
        self._notes = {NOTES: self.program.notes()[NOTES]}
        judges = [m for m in self.program.metrics if m.function is None and judge_name(m)]
        self._judged = 2 * 2 * len(judges)  # in both orders, each with a repair

    def of(self, candidate: Candidate) -> CandidateFlow:
        """The workflow of a candidate. Raises: `EditError` where its edits leak or do not fit."""
        if candidate not in self._flows:
            try:
                patch = patch_of(candidate)
                self._refuse_leaks(patch)
                self._flows[candidate] = self._made(patch.apply(self.base))
            except EditError as error:
                self._flows[candidate] = error
        found = self._flows[candidate]
        if isinstance(found, EditError):
            raise found
        return found

    def allowed(self, candidate: Candidate) -> bool:
        """Whether its edits fit together and pass all checks."""
        try:
            self.of(candidate)
        except EditError:
            return False
        return True

    def _refuse_leaks(self, patch: Patch) -> None:
        found = self._scan.leaks(patch, self._before)
        self.leaks += [each for each in found if each not in self.leaks]
        if found:
            leak = found[0]
            edit, _, node = leak.place.partition(" ")
            said = f"it shows {leak.what}: case {leak.case} of {leak.split}"
            raise EditError(said, edit=edit, node=node, hint="show cases of train only")

    def _made(self, flow: AnyFlow) -> CandidateFlow:
        digest = document_digest(flow.document)
        if digest not in self._by_digest:
            program = replace(self.program, unit=flow.unit, width=1)
            composed: AnyFlow = Flow.of(program.composed())
            self._by_digest[digest] = CandidateFlow(digest, flow, composed)
        return self._by_digest[digest]

    def bound(self, made: CandidateFlow, case: Case) -> int:
        """The most model calls of a run on a case, judges included."""
        own = self._documented(made, case)
        most = self.calls_per_case if own is None else min(own, self.calls_per_case)
        return most + self._judged

    def most(self, made: CandidateFlow, case: Case) -> int:
        """The calls after which a run is stopped: `bound`, and repetitions of lost connections."""
        own = self._documented(made, case, repetitions=True)
        again = MODEL_RETRY.attempts
        if own is None:
            return self.bound(made, case)
        return min(own, again * self.calls_per_case) + again * self._judged

    def _documented(
        self, made: CandidateFlow, case: Case, *, repetitions: bool = False
    ) -> int | None:
        key = (made.digest, case.id, repetitions)
        if key not in self._bounds:
            unit = made.flow.unit
            self._bounds[key] = call_bound(unit, case.inputs, repetitions=repetitions)
        return self._bounds[key]

    def item(self, case: Case, replicate: int) -> dict[str, Any]:
        """A case as an evaluation has it, with the seed that it has there."""
        seed = seed_of_case(case.id, replicate)
        return {"case": case.data, "replicate": replicate, "seed": seed}

    def inputs(self, case: Case, replicate: int) -> Mapping[str, Any]:
        """The inputs of `CandidateFlow.evaluation`."""
        return {ITEMS: [self.item(case, replicate)]}

    def read(self, item: Mapping[str, Any], trace: Trace) -> CaseResult:
        """How an evaluation with this trace scores the case: as `weft.evaluate` does."""
        return evaluation_of("", self._notes, [item], trace, self.program.metrics).cases[0]
