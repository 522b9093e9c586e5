"""A study: the search over candidates of a workflow, recorded so that it can go on or be replayed.

study = Study(program, cases, options, record, models)
result = await study.run()
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weft.core.errors import BudgetExceeded, InputError
from weft.core.ports import Clock, ModelClient
from weft.core.values import Usage
from weft.evaluation.case import SHARES, Case, digest_of
from weft.evaluation.program import EvaluationProgram
from weft.optimisation.budget import StudyBudget, StudyLedger, recorded_spend
from weft.optimisation.candidate_flows import CandidateFlows
from weft.optimisation.candidates import Candidate, CaseId, Proposal, Proposer, SearchState
from weft.optimisation.data_size import shortage
from weft.optimisation.decide import HeldOut
from weft.optimisation.evaluator import DocumentEvaluator, RunSlots
from weft.optimisation.options import baseline_of, knob_options
from weft.optimisation.propose.registry import ProposerLike, make_proposer, named
from weft.optimisation.propose.study_context import StudyContext
from weft.optimisation.record import StudyRecord
from weft.optimisation.result import StudyResult
from weft.optimisation.result_builder import ResultBuilder
from weft.optimisation.search import Search, SearchPlan, SearchReport
from weft.optimisation.space import declared_space, discovered_space
from weft.optimisation.study_options import StudyOptions
from weft.workflow.runtime.models.factory import Models, ModelSource

_BLOCK: Final = 12
_LEAST: Final = 4
"""With fewer development cases nothing can be searched."""
_PROBED: Final = 24
"""Development cases on which the baseline is measured first: what it costs, and its figures."""


@dataclass(frozen=True, slots=True)
class StudyCases:
    """The cases of a study. `canaries` are cases that no honest answer gets right."""

    train: tuple[Case, ...]
    development: tuple[Case, ...]
    held_out: tuple[Case, ...]
    canaries: tuple[Case, ...] = ()

    @classmethod
    def of(
        cls,
        cases: Sequence[Case],
        canaries: Sequence[Case] = (),
        shares: Sequence[int] = SHARES,
    ) -> StudyCases:
        """By their splits. `shares`: those that split them, for what is said of too few.

        Raises: `InputError` with too few to search on.
        """
        split = {
            name: tuple(case for case in cases if case.split == name)
            for name in ("train", "dev", "held_out")
        }
        made = cls(split["train"], split["dev"], split["held_out"], tuple(canaries))
        if len(made.development) < _LEAST:
            counts = ", ".join(f"{len(found)} {name}" for name, found in split.items())
            hint = f"at least {_LEAST} dev cases; more data, or other `shares`"
            short = shortage({name: len(found) for name, found in split.items()}, shares)
            what = f"too few cases for a study: {counts}"
            raise InputError(f"{what}; {short}" if short else what, hint=hint)
        return made

    @property
    def sizes(self) -> dict[str, int]:
        """How many there are of each kind."""
        return {
            "train": len(self.train),
            "dev": len(self.development),
            "held_out": len(self.held_out),
            "canaries": len(self.canaries),
        }

    @property
    def every(self) -> tuple[Case, ...]:
        """The cases of all splits, without canaries."""
        return (*self.train, *self.development, *self.held_out)

    @property
    def held_out_digest(self) -> str:
        """What names the held-out cases, in any order and study."""
        return digest_of(sorted(self.held_out, key=lambda case: case.id))

    def by_id(self) -> dict[CaseId, Case]:
        """All but training cases, by the ids that a search has for them."""
        own: dict[CaseId, Case] = {case.id: case for case in (*self.development, *self.held_out)}
        return own | {canary_id(case): case for case in self.canaries}


def canary_id(case: Case) -> str:
    """The id of a canary in a search: canaries are another data set."""
    return f"canary:{case.id}"


@dataclass
class CountedProposer:
    """Implements `Proposer`: another one, whose candidates and calls are counted for the report."""

    name: str
    inner: Proposer
    candidates: int = 0
    spent: int = 0

    @property
    def calls(self) -> int:
        """See `Proposer`."""
        return self.inner.calls

    @property
    def dropped(self) -> int:
        """How many of its answers and edits did not fit, where it counts them as `refused`."""
        return int(getattr(self.inner, "refused", 0))

    async def propose(self, state: SearchState) -> Proposal:
        """See `Proposer`."""
        made = await self.inner.propose(state)
        self.candidates += len(made.candidates)
        self.spent += made.calls
        return made


@dataclass
class JournalledHeldOut(HeldOut):
    """Held-out cases whose earlier looks are those of the journal."""

    record: StudyRecord | None = None
    digest: str = ""

    def open(self, most: int | None = None) -> tuple[Sequence[CaseId], Any]:
        """See `HeldOut`."""
        self.looks = 0 if self.record is None else self.record.looks_before(self.digest)
        return super().open(most)


@dataclass
class Study:
    """One study. `stop` ends it soon, with the front so far; its run can be resumed then.

    `proposers`: objects and functions that are made for this process, else those of `options`.
    `offline`: nothing runs that the record does not have. `owned`: models that it closes.
    """

    program: EvaluationProgram
    cases: StudyCases
    options: StudyOptions
    record: StudyRecord
    models: ModelSource
    clock: Clock
    proposers: Sequence[ProposerLike] = ()
    proposer_model: ModelClient | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    offline: bool = False
    owned: Models | None = None

    def __post_init__(self) -> None:
        options, record = self.options, self.record
        self._ledger = StudyLedger(
            options.calls, options.budget, lambda: record.elapsed_s, offline=self.offline
        )
        self._take_spent()
        self._budget = StudyBudget(options.calls, limits=options.budget)
        self.flows = CandidateFlows(self.program, options.calls_per_case, self.cases.every)
        slots = RunSlots(options.slots, options.workers, self._slot_limits())
        self._evaluator = DocumentEvaluator(
            self.flows,
            self.cases.by_id(),
            record,
            self._ledger,
            self._budget,
            self.models,
            slots,
            self.clock,
            self.settings,
        )
        document = self.program.unit.document
        declared = document.optimise is not None and document.optimise.knobs
        space = declared_space(document) if declared else discovered_space(document)
        self.knobs = knob_options(space)
        context = StudyContext(self._evaluator, self.cases.train, options.seed, self.proposer_model)
        self._proposers = [
            CountedProposer(named(each), make_proposer(each, context, self.knobs))
            for each in (self.proposers or options.proposers)
        ]
        self._interrupted = ""

    def stop(self, why: str = "interrupted") -> None:
        """Begin no further model call. `run` then returns what was found so far."""
        self._interrupted = self._interrupted or why
        self._ledger.stop(why)

    @property
    def progress(self) -> tuple[str, int, int]:
        """The step that it is at, the model calls begun so far, and the most there may be."""
        return self._evaluator.purpose, self._ledger.calls, self.options.calls

    async def run(self) -> StudyResult:
        """Search to the end, and record the result.

        Raises: `InputError` for too small a data set, `StoreError`.
        """
        try:
            search, report = await self._searched()
        finally:
            await self._evaluator.aclose()
            if self.owned is not None:
                await self.owned.aclose()
        result = ResultBuilder(self, search, self._evaluator, self._budget).result(
            report, self._interrupted
        )
        if not self._interrupted and not self.offline:
            spent = result.spent
            usage = Usage(spent.tokens, requests=spent.calls, money=spent.money)
            self.record.end("succeeded", result.plain(), usage)
        return result

    async def _searched(self) -> tuple[Search | None, SearchReport | None]:
        search: Search | None = None
        try:
            search = await self._prepared()
            return search, await search.run()
        except (BudgetExceeded, ExceptionGroup) as error:
            others = [each for each in _leaves(error) if not isinstance(each, BudgetExceeded)]
            if others:
                raise others[0] from None
            if self.offline:
                raise InputError(
                    "the record of the study does not have all of it", hint="resume it"
                ) from error
        return search, None if search is None else search.so_far(self._ledger.stopped)

    async def _prepared(self) -> Search:
        """The search, once the baseline has shown its figures."""
        cases, options = self.cases, self.options
        if not self._proposers and all(len(options) < 2 for options in self.knobs.values()):
            hint = "name `knobs` in the workflow's `optimise`, or `proposers`"
            raise InputError("there is nothing to try", hint=hint)
        baseline = baseline_of(self.knobs)
        development = [case.id for case in cases.development]
        probed = development[:_PROBED]
        replicates = self.program.replicates
        with self._evaluator.step("search"):
            found = await self._evaluator.outcomes(baseline, probed, replicates)
        self._budget.spend(sum(outcome.calls for outcome in found), "search")
        self._check_runs(baseline, probed)
        return Search(
            self._evaluator,
            self.knobs,
            baseline,
            development,
            JournalledHeldOut(
                [case.id for case in cases.held_out],
                [case.group or case.id for case in cases.held_out] if self._grouped else None,
                record=self.record,
                digest=cases.held_out_digest,
            ),
            options.goal_for(found),
            self._proposers,
            [canary_id(case) for case in cases.canaries],
            SearchPlan(
                calls=options.calls,
                replicates=replicates,
                block_cases=min(_BLOCK, len(development)),
                seed=options.seed,
            ),
            self.flows.allowed,
            self._budget,
            self._evaluator.step,
            self._evaluator.most_calls(baseline, [case.id for case in cases.held_out], replicates),
        )

    def _check_runs(self, baseline: Candidate, cases: Sequence[CaseId]) -> None:
        """Raises: `InputError` where the workflow as it is fails, or is not scored, on all."""
        runs = self._evaluator.runs(baseline, cases, self.program.replicates)
        broken = [run for run in runs if run.status != "scored"]
        if len(broken) < len(runs):
            return
        failed = any(run.status == "failed" for run in broken)
        what = "the workflow fails" if failed else "the metric gives no score"
        why = next((run.reason for run in broken if run.reason), "")
        said = f"{what} on all of the first {len(cases)} cases" + (f": {why}" if why else "")
        raise InputError(said, hint="`weft eval` shows it case by case")

    @property
    def _grouped(self) -> bool:
        return any(case.group not in ("", case.id) for case in self.cases.held_out)

    @property
    def counted(self) -> Sequence[CountedProposer]:
        """The proposers, with what they named."""
        return self._proposers

    def _slot_limits(self) -> dict[str, int]:
        limits = self.program.unit.document.run.limits
        own = {name: limit.slots for name, limit in limits.items() if limit.slots is not None}
        return {**own, **self.options.limits}

    def _take_spent(self) -> None:
        """Start the ledger with what earlier processes have used."""
        done = [each.get("run", each) for each in self.record.done.values()]
        spends = [recorded_spend(each["paid"]) for each in done]
        for result in self.record.results.values():
            if result.owner not in self.record.done:
                usage = Usage(**result.entry["cost"]["usage"])
                self._ledger.calls += usage.requests
                self._ledger.usage += usage
        for spend in spends:
            self._ledger.calls += spend.calls
            self._ledger.usage += Usage(spend.tokens, money=spend.money)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error
