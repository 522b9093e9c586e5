"""The search finds what is planted, and nothing where nothing is; it keeps to its budget."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.optimisation.planted import BASELINE, KNOBS, PlantedEvaluator
from weft.core.errors import InputError
from weft.optimisation.candidates import Candidate, CaseOutcome, Proposal, SearchState
from weft.optimisation.decide import HeldOut
from weft.optimisation.goal import StudyGoal
from weft.optimisation.objectives import COST, LATENCY, QUALITY
from weft.optimisation.search import Search, SearchPlan, SearchReport

DEVELOPMENT = [f"dev{at}" for at in range(120)]
HELD_OUT = [f"held{at}" for at in range(200)]
GOOD = {("draft.prompt", "c"): 0.2, ("solve.order", "y"): 0.15, ("draft.demos", 4): -0.1}


def study(evaluator: PlantedEvaluator, **options: object) -> SearchReport:
    held_out = options.pop("held_out", None) or HeldOut(HELD_OUT)
    knobs = options.pop("knobs", KNOBS)
    return asyncio.run(
        Search(evaluator, knobs, BASELINE, DEVELOPMENT, held_out, **options).run()  # type: ignore[arg-type]
    )


def test_it_finds_what_is_planted_and_reports_the_held_out_gain() -> None:
    report = study(PlantedEvaluator(GOOD))
    verdict = report.verdict
    assert verdict.kind == "improved"
    assert verdict.candidate.edits(BASELINE) == {"draft.prompt": "c", "solve.order": "y"}
    gain = verdict.comparisons[-1].gains["quality"]
    assert gain.low > 0.15
    assert gain.low <= gain.mean <= gain.high
    assert 0 < verdict.detectable < gain.mean
    assert verdict.looks == 1
    assert report.calls == sum(report.spent.values()) <= 12_000
    assert verdict.candidate in report.front


@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_found_where_nothing_helps(seed: int) -> None:
    bad = {each: -abs(effect) for each, effect in GOOD.items()}
    report = study(PlantedEvaluator(bad, base=0.6, seed=seed))
    assert report.verdict.kind in ("not_shown", "no_headroom")
    assert report.verdict.candidate == BASELINE
    assert report.verdict.detectable > 0


def test_a_perfect_baseline_needs_no_held_out_case() -> None:
    report = study(PlantedEvaluator({}, base=1.0))
    assert report.verdict.kind == "no_headroom"
    assert report.verdict.looks == 0
    assert "held-out" not in report.spent


@pytest.mark.parametrize("calls", [1, 60, 400, 900, 1_500])
def test_the_budget_is_never_overrun(calls: int) -> None:
    evaluator = PlantedEvaluator(GOOD)
    report = study(evaluator, plan=SearchPlan(calls=calls))
    assert evaluator.calls == report.calls <= calls
    assert report.verdict.kind != "improved" or calls >= 900


def test_the_same_seed_gives_the_same_study() -> None:
    one, other = study(PlantedEvaluator(GOOD)), study(PlantedEvaluator(GOOD))
    assert one == other


def test_few_held_out_cases_never_say_improved() -> None:
    report = study(PlantedEvaluator(GOOD), held_out=HeldOut(HELD_OUT[:29]))
    assert report.verdict.kind == "not_shown"
    assert "29 held-out cases" in report.verdict.reason


def test_looks_go_on_from_those_of_earlier_studies() -> None:
    held_out = HeldOut(HELD_OUT, looks=2)
    assert study(PlantedEvaluator(GOOD), held_out=held_out).verdict.looks == 3
    assert held_out.looks == 3


def test_what_gains_on_canaries_is_banned() -> None:
    hack = ("draft.demos", 4)
    evaluator = PlantedEvaluator(GOOD | {hack: 0.3}, base=0.2, canary=hack)
    verdict = study(evaluator, canaries=[f"canary{at}" for at in range(30)]).verdict
    assert verdict.kind == "improved"
    assert verdict.candidate.edits(BASELINE) == {"draft.prompt": "c", "solve.order": "y"}
    assert hack in study(evaluator).verdict.candidate.settings  # without them it is believed


class Overfitting(PlantedEvaluator):
    """One setting helps on development cases only."""

    def _outcome(self, candidate: Candidate, case: object) -> CaseOutcome:
        found = super()._outcome(candidate, case)
        bait = ("draft.demos", 4) in candidate.settings and str(case).startswith("dev")
        return CaseOutcome(1.0 if bait else found.score, calls=found.calls)


def test_what_only_development_cases_like_is_not_accepted_and_takes_nothing_with_it() -> None:
    verdict = study(Overfitting(GOOD | {("draft.demos", 4): -0.4})).verdict
    assert verdict.kind == "improved"
    assert verdict.candidate.edits(BASELINE).get("draft.demos") is None
    assert len(verdict.comparisons) == 2


class Fixed:
    """Proposes a setting that the knobs do not have."""

    calls = 1

    def __init__(self, candidate: Candidate) -> None:
        self.candidate = candidate

    async def propose(self, state: SearchState) -> Proposal:
        assert state.baseline == BASELINE
        return Proposal([self.candidate], 1)


def test_a_proposed_option_joins_the_knobs() -> None:
    new = BASELINE.replace("draft.prompt", "written by a model")
    effects = {("draft.prompt", "written by a model"): 0.35}
    report = study(PlantedEvaluator(effects), proposers=[Fixed(new)])
    assert report.verdict.candidate == new
    assert report.spent["proposals"] >= 1
    with pytest.raises(InputError, match="no knob of this study"):
        study(PlantedEvaluator(effects), proposers=[Fixed(BASELINE.replace("other", 1))])


class Slow(PlantedEvaluator):
    """One setting helps and is slow, one helps and is dear."""

    def _outcome(self, candidate: Candidate, case: object) -> CaseOutcome:
        found = super()._outcome(candidate, case)
        settings = dict(candidate.settings)
        seconds = 1.0 + 0.5 * (settings["draft.prompt"] == "c")
        cost = 0.1 + 0.1 * (settings["draft.demos"] == 4)
        return CaseOutcome(found.score, seconds, cost, 0, found.calls)


def test_what_must_be_kept_is_kept() -> None:
    effects = {("draft.prompt", "c"): 0.3, ("draft.demos", 4): 0.3, ("solve.order", "y"): 0.2}
    verdict = study(Slow(effects, base=0.2), goal=StudyGoal(QUALITY, (LATENCY, COST))).verdict
    assert verdict.candidate.edits(BASELINE) == {"solve.order": "y"}
    only = study(Slow(effects, base=0.2), goal=StudyGoal(QUALITY, (LATENCY,))).verdict
    assert only.candidate.edits(BASELINE) == {"solve.order": "y", "draft.demos": 4}


def test_studies_that_cannot_be_are_refused() -> None:
    evaluator = PlantedEvaluator({})

    def made(**options: object) -> Search:
        knobs: object = options.pop("knobs", KNOBS)
        cases: Sequence[object] = options.pop("cases", DEVELOPMENT)  # type: ignore[assignment]
        return Search(evaluator, knobs, BASELINE, cases, HeldOut(HELD_OUT), **options)  # type: ignore[arg-type]

    with pytest.raises(InputError, match="a setting for each knob"):
        made(knobs={"other": (1, 2)})
    with pytest.raises(InputError, match="too few"):
        made(cases=DEVELOPMENT[:3])
    with pytest.raises(InputError, match="must not be a development case"):
        made(cases=[*DEVELOPMENT, HELD_OUT[0]])
    with pytest.raises(InputError, match="pays for nothing"):
        made(plan=SearchPlan(calls=0))
    with pytest.raises(InputError, match="named once"):
        StudyGoal(QUALITY, (QUALITY,))
    with pytest.raises(InputError, match="one group"):
        HeldOut(HELD_OUT, groups=["a"])
