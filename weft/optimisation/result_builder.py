"""Builds the result of a study from its search: figures, edits, cases won and lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING

from weft.optimisation.budget import StudyBudget
from weft.optimisation.candidates import Candidate, CaseOutcome
from weft.optimisation.decide import StudyVerdict
from weft.optimisation.evaluator import DocumentEvaluator
from weft.optimisation.objectives import LATENCY, QUALITY, Objective, cost_of
from weft.optimisation.options import EditOption, baseline_of, patch_of
from weft.optimisation.result import (
    BASELINE,
    CaseChange,
    EditNote,
    FigureSource,
    FrontMember,
    ObjectiveFigure,
    ProposerNote,
    StudyResult,
    VerdictSummary,
)
from weft.optimisation.search import Search, SearchReport
from weft.workflow.document.rewrite import document_diff

if TYPE_CHECKING:
    from weft.optimisation.study import Study

_NAMES = {"quality": "quality", "latency": "p95_s", "cost": "cost_usd"}


@dataclass
class ResultBuilder:
    """Reads what a study has measured; runs nothing."""

    study: Study
    search: Search | None
    evaluator: DocumentEvaluator
    budget: StudyBudget

    def __post_init__(self) -> None:
        self._baseline = baseline_of(self.study.knobs)
        self._replicates = self.study.program.replicates
        self._held_out = [case.id for case in self.study.cases.held_out]
        options = self.study.options
        goals = self.search.goal.objectives if self.search is not None else ()
        known = {each.name: each for each in goals}
        cost = cost_of(self._paired(self._baseline)[1])
        self._objectives = [known.get(each.name, each) for each in (QUALITY, LATENCY, cost)]
        self._improve = options.goal

    def result(self, report: SearchReport | None, interrupted: str) -> StudyResult:
        """The result; `interrupted`: why the study has not ended, else empty."""
        study, options = self.study, self.study.options
        verdict = None if report is None else report.verdict
        best = self._baseline if verdict is None else verdict.candidate
        members = self._front(self._shown_candidates(report), best)
        chosen = next((made for each, made in members if each == best), self._member(best, "best"))
        changes = self._changes(self._shown(verdict, best))
        document, earlier = study.program.unit.document, self.budget.sunk
        return StudyResult(
            run=study.record.run,
            flow=document.name,
            improve=self._improve,
            verdict=_summary(verdict, interrupted),
            baseline=self._member(self._baseline, BASELINE),
            front=tuple(made for _, made in members),
            best=chosen if best != self._baseline else self._member(best, BASELINE),
            keep=dict(options.keep),
            data=study.program.about_data,
            metric=study.program.names[0],
            splits=study.cases.sizes,
            replicates=self._replicates,
            seed=options.seed,
            spend=dict(self.budget.paid) | ({"earlier": earlier} if earlier.calls else {}),
            budget={
                name: value
                for name in ("calls", "tokens", "money", "seconds")
                if (value := getattr(options, name)) is not None
            },
            calls_saved=self.evaluator.saved,
            candidates=self._measured(report),
            won=tuple(each for each in changes if each.after > each.before),
            lost=tuple(each for each in changes if each.after < each.before),
            leaks=tuple(self.evaluator.flows.leaks),
            proposers=tuple(
                ProposerNote(each.name, each.candidates, each.dropped, each.spent)
                for each in study.counted
            ),
            wall_s=self.budget.elapsed_s,
        )

    def _shown_candidates(self, report: SearchReport | None) -> list[Candidate]:
        """The finalists that were looked at, whatever the look showed, then the search's front."""
        if report is None:
            return []
        looked_at = [made.candidate for made in report.verdict.comparisons]
        return list(dict.fromkeys([*looked_at, *report.front]))

    def _front(
        self, candidates: Sequence[Candidate], best: Candidate
    ) -> list[tuple[Candidate, FrontMember]]:
        """Members with different documents: the best one, others with held-out figures, the rest;
        each by the improved figure.
        """
        others = [each for each in candidates if each not in (self._baseline, best)]
        others.sort(key=self._rank)
        chosen = [*([] if best == self._baseline else [best]), *others]
        seen = {self.evaluator.flows.of(self._baseline).digest}
        made: list[tuple[Candidate, FrontMember]] = []
        for each in chosen:
            digest = self.evaluator.flows.of(each).digest
            if digest not in seen:
                seen.add(digest)
                made.append((each, self._member(each, f"{len(made) + 1}")))
        return made

    def _rank(self, candidate: Candidate) -> tuple[bool, float]:
        """Held-out figures first, then the larger gain of the improved figure."""
        new, old, source = self._paired(candidate)
        goal = next(each for each in self._objectives if each.name == self._improve)
        gain = goal.figure(new) - goal.figure(old) if new else -inf
        return source != "held-out", -gain

    def _member(self, candidate: Candidate, name: str) -> FrontMember:
        flows = self.evaluator.flows
        made, patch = flows.of(candidate), patch_of(candidate)
        before = self.study.program.unit.document
        is_changed = candidate != self._baseline
        return FrontMember(
            name,
            made.digest,
            tuple(patch.plain()),
            self._figures(candidate),
            self._edits(candidate) if is_changed else (),
            document_diff(before, made.flow.document) if is_changed else "",
        )

    def _edits(self, candidate: Candidate) -> tuple[EditNote, ...]:
        worth = {} if self.search is None else self.search.contributions(candidate)
        if self.search is not None and self.search.goal.improve.quantile is not None:
            worth = {}  # in shares of cases, and not in the figure's unit
        found = []
        for knob, option in candidate.edits(self._baseline).items():
            assert isinstance(option, EditOption)
            edits = tuple(edit.plain() for edit in option.read())
            found.append(EditNote(knob, option.label, option.why, edits, worth.get(knob)))
        return tuple(found)

    def _figures(self, candidate: Candidate) -> tuple[ObjectiveFigure, ...]:
        new, old, source = self._paired(candidate)
        if not new:
            return ()
        groups = self.search.held_out.groups if source == "held-out" and self.search else None
        return tuple(_figure(objective, new, old, source, groups) for objective in self._objectives)

    def _paired(
        self, candidate: Candidate
    ) -> tuple[Sequence[CaseOutcome], Sequence[CaseOutcome], FigureSource]:
        """Outcomes of the candidate and of the baseline, on the best cases that there are."""
        held_out = [
            self.evaluator.known(each, self._held_out, self._replicates)
            for each in (candidate, self._baseline)
        ]
        if self._held_out and held_out[0] is not None and held_out[1] is not None:
            return held_out[0], held_out[1], "held-out"
        return *self._developed(candidate), "development"

    def _developed(
        self, candidate: Candidate
    ) -> tuple[Sequence[CaseOutcome], Sequence[CaseOutcome]]:
        """Outcomes of both on the development cases that both have run on, each case once."""
        found: list[tuple[CaseOutcome, CaseOutcome]] = []
        for case in self.study.cases.development:
            new, old = (
                self.evaluator.known(each, [case.id], self._replicates)
                for each in (candidate, self._baseline)
            )
            if new and old and old[0].scored:
                found.append((new[0], old[0]))
        return [new for new, _ in found], [old for _, old in found]

    def _shown(self, verdict: StudyVerdict | None, best: Candidate) -> Candidate:
        """The candidate whose won and lost cases are of interest."""
        if best == self._baseline and verdict is not None and verdict.comparisons:
            return verdict.comparisons[0].candidate
        return best

    def _changes(self, candidate: Candidate) -> list[CaseChange]:
        if candidate == self._baseline:
            return []
        own = self.evaluator.known(candidate, self._held_out, self._replicates)
        base = self.evaluator.known(self._baseline, self._held_out, self._replicates)
        if own is None or base is None:
            return []
        return [
            CaseChange(case.id, old.score, new.score, case.group)
            for case, old, new in zip(self.study.cases.held_out, base, own, strict=True)
            if old.scored and new.scored and old.score != new.score
        ]

    def _measured(self, report: SearchReport | None) -> int:
        found = () if report is None else report.blocks
        return len({self.evaluator.flows.of(each).digest for block in found for each in block})


def _figure(
    objective: Objective,
    new: Sequence[CaseOutcome],
    old: Sequence[CaseOutcome],
    source: FigureSource,
    groups: Sequence[object] | None,
) -> ObjectiveFigure:
    sign = 1.0 if objective.name == "quality" else -1.0
    gain = objective.gain(new, old, groups=groups)
    low, high = sorted((sign * gain.low, sign * gain.high))
    name = objective.unit if objective.unit == "tokens" else _NAMES[objective.name]
    if objective.name == "latency" and objective.quantile is None:
        name = "mean_s"
    value, change = sign * objective.figure(new) + 0.0, sign * gain.mean + 0.0  # no -0.0
    return ObjectiveFigure(objective.name, name, value, change, low, high, source, len(new))


def _summary(verdict: StudyVerdict | None, interrupted: str) -> VerdictSummary:
    if verdict is None:
        why = interrupted or "the budget does not pay for measuring the workflow as it is"
        return VerdictSummary("unfinished" if interrupted else "not_shown", why)
    detectable = verdict.detectable if isfinite(verdict.detectable) else None
    p = min((each.p_adjusted for each in verdict.comparisons), default=None)
    kind = "unfinished" if interrupted else verdict.kind
    why = interrupted or verdict.reason
    return VerdictSummary(kind, why, detectable, verdict.looks, verdict.cases, p)
