"""The search: propose, predict, measure, race; then the gate and the report.

    report = await Search(evaluator, knobs, baseline, development, HeldOut(cases)).run()
    report.verdict.kind, report.verdict.candidate, report.front

A hard budget of fresh model calls covers proposals, development, canaries and held-out cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final, Literal

from weft.core.errors import InputError
from weft.evaluation.statistics import detectable_difference, sign_flip
from weft.optimisation.candidates import (
    Block,
    CallBudget,
    Candidate,
    CaseId,
    Evaluator,
    KnobOptions,
    Option,
    Proposer,
    SearchState,
)
from weft.optimisation.decide import (
    DISCORDANCE,
    LEAST_CASES,
    FinalistComparison,
    HeldOut,
    StudyVerdict,
    ceiling,
    compare_finalists,
    describe,
    detectable_from,
    no_headroom,
)
from weft.optimisation.factors import FactorSpace
from weft.optimisation.goal import GoalResponses, StudyGoal
from weft.optimisation.measurements import Measurements
from weft.optimisation.objectives import Outcomes, Point, pareto_front
from weft.optimisation.racing import race
from weft.optimisation.screening import Screening, balanced_design

_UPPER: Final = 1.645
_SUSPICION: Final = 0.2
"""Below this p a gain on canaries bans a setting: what cannot be gained needs no strong proof."""


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """Sizes of the steps of a search, and its limits.

    `worthwhile` is the smallest gain of interest, in units of the improved figure (a share of the
    baseline's latency or cost); the search stops when it expects less from going on.
    """

    calls: int = 12_000
    replicates: int = 1
    design: int = 20
    candidates: int = 14
    block_cases: int = 12
    rounds: int = 9
    racers: int = 4
    race_cases: int = 24
    worthwhile: float = 0.02
    level: float = 0.05
    seed: int = 0


@dataclass(frozen=True, slots=True)
class SearchReport:
    """What a search found. `front`: predicted changes against the baseline, by objective."""

    verdict: StudyVerdict
    front: Mapping[Candidate, Point]
    spent: Mapping[str, int]
    blocks: Sequence[Block]

    @property
    def calls(self) -> int:
        """Fresh model calls in all."""
        return sum(self.spent.values())


@dataclass
class Search:
    """One study. `canaries` are cases that no honest answer gets right: a candidate that gains on
    them gains by the metric, and the settings that do so are banned. `allowed`: whether a candidate
    can be run; others are never measured. `budget` replaces one of `plan.calls`. `step` is entered
    for each step, by its purpose. `look`: the calls of one candidate on the held-out cases; by
    default those that the baseline needs now.
    """

    evaluator: Evaluator
    knobs: KnobOptions
    baseline: Candidate
    development: Sequence[CaseId]
    held_out: HeldOut
    goal: StudyGoal = field(default_factory=StudyGoal)
    proposers: Sequence[Proposer] = ()
    canaries: Sequence[CaseId] = ()
    plan: SearchPlan = field(default_factory=SearchPlan)
    allowed: Callable[[Candidate], bool] | None = None
    budget: CallBudget | None = None
    step: Callable[[str], AbstractContextManager[object]] = nullcontext
    look: int | None = None

    def __post_init__(self) -> None:
        default = dict(self.baseline.settings)
        if default.keys() != self.knobs.keys():
            raise InputError("the baseline has a setting for each knob, and for no other")
        if len(self.development) < self.plan.block_cases:
            raise InputError(
                f"{len(self.development)} development cases are too few",
                hint=f"a block has {self.plan.block_cases}",
            )
        if set(self.development) & set(self.held_out.cases):
            raise InputError("a held-out case must not be a development case")
        self._random = Random(self.plan.seed)  # noqa: S311
        self._known = {name: list(options) for name, options in self.knobs.items()}
        self._learn([self.baseline])
        self._banned: set[tuple[str, Option]] = set()
        self._cleared: set[tuple[str, Option]] = set()
        self._next = 0
        self._made = Measurements(
            self.evaluator,
            self.baseline,
            self.budget or CallBudget(self.plan.calls),
            self.plan.replicates,
            step=self.step,
        )

    async def run(self) -> SearchReport:
        """Search, then decide."""
        cases, replicates = self.held_out.cases, self.plan.replicates
        look = self.look
        if look is None:
            look = self.evaluator.calls_needed(self.baseline, cases, replicates)
        self._made.reserve = min(2 * look, self.plan.calls // 2)
        best = await self._screen()
        if self._made.blocks:
            best = await self._race(best)
            self._cleared.clear()  # what was clear one by one may not be so together
            best = await self._check_canaries(best)
            verdict, front = await self._decide(best), self._front()
        else:
            why = f"{self.plan.calls} model calls do not pay for a block of cases"
            verdict, front = self._unchanged("not_shown", why, self._detectable(best)), {}
        return self._report(verdict, front)

    def so_far(self, why: str) -> SearchReport:
        """What was found by a search that could not end, with the reason `why`."""
        front = self._front() if self._made.blocks else {}
        return self._report(
            self._unchanged("not_shown", why, self._detectable(self.baseline)), front
        )

    def paired(self, candidate: Candidate) -> tuple[Outcomes, Outcomes]:
        """Development outcomes of a candidate, and the baseline's on the same cases."""
        return self._made.of(candidate)

    def contributions(self, candidate: Candidate) -> Mapping[str, float]:
        """By knob, what the fitted model says that the candidate's edit is worth."""
        return self._fitted().edit_worth(candidate) if self._made.blocks else {}

    def _report(self, verdict: StudyVerdict, front: Mapping[Candidate, Point]) -> SearchReport:
        return SearchReport(verdict, front, dict(self._made.budget.by), tuple(self._made.blocks))

    async def _screen(self) -> Candidate:
        """Blocks of candidates on new cases, until more of them would not pay."""
        plan, best = self.plan, self.baseline
        named = await self._proposed(best)
        designed = balanced_design(self._space(), plan.design - len(named), self._random)
        named += self._runnable(designed)
        for _ in range(plan.rounds):
            if not await self._made.develop(
                [best, *named], self._cases(plan.block_cases), "search"
            ):
                break
            best = await self._check_canaries(self._incumbent(self._fitted()))
            screening = self._fitted()
            regret, named = screening.draws(best, self._random)
            if regret < self._worthwhile() / 3:
                break
            named = [*await self._proposed(best), *self._runnable(named)][: plan.candidates]
        return best

    async def _race(self, best: Candidate) -> Candidate:
        """The expected best and its neighbours on cases that none of them has seen."""
        if best == self.baseline:
            return best
        screening = self._fitted()
        racers = [best, *screening.alternatives(best, self.plan.racers - 1)]

        async def measure(
            candidates: Sequence[Candidate], cases: Sequence[CaseId]
        ) -> Mapping[Candidate, Sequence[float]]:
            block = await self._made.develop(candidates, cases, "race")
            if not block:
                return {}
            return screening.responses.utilities(block, self.baseline, screening.model)

        cases = self._cases(self.plan.race_cases)
        evaluations = max(len(racers), self.plan.racers * self.plan.race_cases)
        ended = await race(self.baseline, racers, cases, measure, evaluations=evaluations)
        screening = self._fitted()
        return max([*ended.survivors, self._incumbent(screening)], key=screening.value)

    async def _check_canaries(self, best: Candidate) -> Candidate:
        """Ban the settings by which the best candidate gains where nothing can be gained.

        Settings in `_cleared` have passed before, and are not checked again.
        """
        while self.canaries and not self._cleared.issuperset(best.edits(self.baseline).items()):
            block = await self._made.all_of([best], self.canaries, "canaries")
            if not block:
                return self.baseline
            new, old = _scores(block[best]), _scores(block[self.baseline])
            gained = [a - b for a, b in zip(new, old, strict=True)]
            if sum(gained) <= 0 or sign_flip(gained) >= _SUSPICION:
                self._cleared |= set(best.edits(self.baseline).items())
                return best
            single = self._runnable(
                self.baseline.replace(knob, option)
                for knob, option in best.edits(self.baseline).items()
            )
            block = await self._made.all_of(single, self.canaries, "canaries") if single else None
            if not block:
                return self.baseline
            worst = max(single, key=lambda each: sum(_scores(block[each])))
            self._banned |= set(worst.edits(self.baseline).items())
            best = self._incumbent(self._fitted())
        return best

    async def _decide(self, best: Candidate) -> StudyVerdict:
        """The gate, where there is something that it could show."""
        screening = self._fitted()
        base = [outcome for block in self._made.blocks for outcome in block[self.baseline]]
        detectable = self._detectable(best)
        why = ceiling(self.goal.improve, base, self.plan.worthwhile)
        if best == self.baseline:
            why = why or "no candidate is expected to be better"
        elif self.goal.improve.quantile is None:
            upper = screening.utility(best) + _UPPER * screening.model.deviation(best)
            upper = max(upper, self._shown_gain(best))
            why = why or no_headroom(upper, detectable)
        if len(self.held_out.cases) < LEAST_CASES:
            short = (
                f"{len(self.held_out.cases)} held-out cases decide nothing; it takes {LEAST_CASES}"
            )
            return self._unchanged("not_shown", short, detectable)
        if why:
            return self._unchanged("no_headroom", why, detectable)
        return await self._gate(self._finalists(best, screening), screening, detectable)

    def _shown_gain(self, best: Candidate) -> float:
        """What the candidate gained on development cases, if that is no chance; else 0.

        The fitted model moves every option towards none. Where many options of a knob are equally
        good each has few cases, and the model says less of each than its own cases do.
        """
        new, old = self._made.of(best)
        if not new:
            return 0.0
        gain = self.goal.improve.gain(new, old, level=0.99)
        return gain.mean if gain.low > 0 else 0.0

    async def _gate(
        self, finalists: Sequence[Candidate], screening: Screening, detectable: float
    ) -> StudyVerdict:
        """One counted look; each finalist in turn, until one is shown to be better and is as good
        as development said. All finalists count for Holm, looked at or not.
        """
        cases, groups = self.held_out.open()
        seen: dict[Candidate, Outcomes] = {}
        comparisons: tuple[FinalistComparison, ...] = ()
        self._made.reserve = 0
        for finalist in finalists:
            block = await self._made.all_of([finalist], cases, "held-out")
            if not block:
                break
            seen[finalist] = block[finalist]
            comparisons = compare_finalists(
                self.goal,
                block[self.baseline],
                seen,
                planned=len(finalists),
                groups=groups,
                level=self.plan.level,
            )
            gain = comparisons[-1].gains[self.goal.improve.name]
            detectable = detectable_from(gain, len(cases), len(cases), level=self.plan.level)
            if comparisons[-1].accepted(self.goal, self.plan.level) and (
                self.goal.improve.quantile is not None or screening.utility(finalist) <= gain.high
            ):
                break
        shown = [made for made in comparisons if made.accepted(self.goal, self.plan.level)]
        if shown:
            best = max(shown, key=lambda made: made.gains[self.goal.improve.name].mean)
            return StudyVerdict(
                "improved",
                best.candidate,
                describe(best),
                detectable,
                self.held_out.looks,
                len(cases),
                comparisons,
            )
        why = "; ".join(map(describe, comparisons))
        why = why or "the budget does not pay for the held-out cases"
        return self._unchanged("not_shown", why, detectable, comparisons)

    def _finalists(self, best: Candidate, screening: Screening) -> list[Candidate]:
        """The best; its most valuable edit alone, where other objectives must be kept; and the best
        without that edit, so that what it gains by bad data (an overfit, a leak) does not take
        everything else with it.
        """
        found, edit = [best], screening.most_valuable_edit(best)
        if edit is not None:
            if self.goal.keep:
                found.append(self.baseline.replace(*edit))
            other = self._incumbent(replace(screening, banned={*self._banned, edit}))
            if screening.utility(other) > self._worthwhile():
                found.append(other)
        return self._runnable(dict.fromkeys(found))

    def _incumbent(self, screening: Screening) -> Candidate:
        """The expected best of all candidates."""
        return screening.incumbent(
            self._random, (each for one in self._made.blocks for each in one)
        )

    def _unchanged(
        self,
        kind: Literal["not_shown", "no_headroom"],
        why: str,
        detectable: float,
        comparisons: tuple[FinalistComparison, ...] = (),
    ) -> StudyVerdict:
        held_out = self.held_out
        cases = len(held_out.cases)
        return StudyVerdict(
            kind, self.baseline, why, detectable, held_out.looks, cases, comparisons
        )

    def _front(self) -> dict[Candidate, Point]:
        """Measured candidates that no other one dominates, by the fitted model."""
        model, count = self._fitted().model, len(self.goal.objectives)
        measured = {each for block in self._made.blocks for each in block}
        points = {
            each: tuple(model.change(each, at) for at in range(count))
            for each in sorted(measured, key=repr)
        }
        return {each: points[each] for each in pareto_front(points)}

    async def _proposed(self, best: Candidate) -> list[Candidate]:
        state = SearchState(self.baseline, self._known, self._made.blocks, best)
        named = await self._made.proposed(self.proposers, state)
        named = self._runnable(named)
        self._learn(named)
        return named

    def _runnable(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        return [each for each in candidates if self.allowed is None or self.allowed(each)]

    def _learn(self, candidates: Sequence[Candidate]) -> None:
        """Add options that a proposer has named to the knobs."""
        for candidate in candidates:
            for knob, option in candidate.settings:
                if knob not in self._known:
                    raise InputError(f"a proposer sets {knob}, which is no knob of this study")
                if option not in self._known[knob]:
                    self._known[knob].append(option)

    def _space(self) -> FactorSpace:
        return FactorSpace(self._known, self.baseline)

    def _fitted(self) -> Screening:
        responses = GoalResponses.of(self.goal, self._made.blocks, self.baseline)
        model = responses.fit(self._space(), self._made.blocks)
        return Screening(
            model, responses, frozenset(self._banned), self._worthwhile(), self.allowed
        )

    def _cases(self, count: int) -> Sequence[CaseId]:
        """The next development cases; from the start again after the last one."""
        found = [
            self.development[at % len(self.development)]
            for at in range(self._next, self._next + min(count, len(self.development)))
        ]
        self._next += len(found)
        return found

    def _worthwhile(self) -> float:
        """The smallest gain of interest, in units of the improved response."""
        improve = self.goal.improve
        if improve.name == "quality" or improve.quantile is not None:
            return self.plan.worthwhile
        base = [outcome for block in self._made.blocks for outcome in block[self.baseline]]
        return self.plan.worthwhile * abs(improve.figure(base))

    def _detectable(self, best: Candidate) -> float:
        """The smallest difference that the held-out cases show, before they are looked at."""
        new, old = self._made.of(best)
        cases = len(self.held_out.cases)
        if new and best != self.baseline:
            gain = self.goal.improve.gain(new, old)
            return detectable_from(gain, len(new), cases, level=self.plan.level)
        return detectable_difference(cases, DISCORDANCE, level=self.plan.level)


def _scores(outcomes: Outcomes) -> list[float]:
    return [outcome.score for outcome in outcomes]
