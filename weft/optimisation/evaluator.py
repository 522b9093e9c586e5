"""Runs candidates of a workflow on cases: each once, with the random numbers of an evaluation."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

from weft.core.errors import BudgetExceeded, RunError
from weft.core.events import Event, NodeSpent
from weft.core.ids import NodeId
from weft.core.ports import Clock
from weft.core.values import Usage
from weft.durability.simulate import Change, recording, simulate
from weft.engine.analysis.trace import Trace
from weft.evaluation.case import Case
from weft.evaluation.result import CaseResult
from weft.optimisation.budget import RunGate, StudyBudget, StudyLedger, recorded_spend
from weft.optimisation.candidate_flows import PLACE, CandidateFlow, CandidateFlows
from weft.optimisation.candidates import Candidate, CaseId, CaseOutcome
from weft.optimisation.prediction import timed
from weft.optimisation.record import StudyRecord
from weft.optimisation.result import Spend
from weft.optimisation.table import OutcomeTable, TableRun
from weft.workflow.runtime.models.factory import ModelSource


@dataclass(frozen=True, slots=True)
class CandidateRun:
    """A candidate on a case, once: as its record has it, in JSON types.

    `paid`: what this run took that no run before it had taken; `saved`: model calls whose answers
    the table had. `at_s`: when it ended, in seconds of the study. `nodes`: what a proposer may see.
    """

    status: str
    score: float
    seconds: float
    cost: float
    tokens: int
    paid: Spend
    saved: int
    at_s: float
    reason: str = ""
    feedback: str = ""
    nodes: Sequence[Mapping[str, Any]] = ()

    @property
    def scored(self) -> bool:
        """Whether there is a score; that of a failed run is 0."""
        return self.status in ("scored", "failed")

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> CandidateRun:
        """The run in recorded data."""
        return cls(**{**data, "paid": recorded_spend(data["paid"])})


@dataclass(frozen=True, slots=True)
class RunSlots:
    """How much goes on at once: `runs` of candidates, and for predicted times `workers` (nodes of
    one run; None: as the workflow says) and `limits` of models and tools.
    """

    runs: int = 16
    workers: int | None = None
    limits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TracedRun:
    """A run of a candidate with its events, for who looks into it."""

    result: CaseResult
    table: TableRun
    events: Sequence[Event]
    gate: RunGate
    paid: Spend


class DocumentEvaluator:
    """Implements `Evaluator` for candidates that are patched workflows; `CaseId`s are ids of cases.

    A result that `record` has is not computed again; what it took is counted when a search first
    asks for it, so that a resumed search counts as the first one did.
    """

    def __init__(
        self,
        flows: CandidateFlows,
        cases: Mapping[CaseId, Case],
        record: StudyRecord,
        ledger: StudyLedger,
        budget: StudyBudget,
        models: ModelSource,
        slots: RunSlots,
        clock: Clock,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.flows = flows
        self._cases = cases
        self.record = record
        self._ledger = ledger
        self._budget = budget
        self._models = models
        self._slots = slots
        self._clock = clock
        self._settings = dict(settings or {})
        self._table = OutcomeTable()
        self._at_once = asyncio.Semaphore(slots.runs)
        self._model_slots = {name: asyncio.Semaphore(n) for name, n in slots.limits.items()}
        self._running: dict[str, asyncio.Task[CandidateRun]] = {}
        self._claimed: set[str] = set()
        self._numbers: dict[NodeId, int] = {}
        self._step: NodeId | None = None
        self.purpose = ""
        self.saved = 0
        self._unclaimed = {digest: recorded_paid(record.done[digest]) for digest in record.earlier}
        budget.sunk = sum(self._unclaimed.values(), Spend())

    @contextmanager
    def step(self, purpose: str) -> Iterator[None]:
        """What is measured inside is a step of this purpose."""
        self.purpose = purpose
        self._step = self.record.step(purpose.replace("-", "_"))
        yield
        self.record.end_step(self._step)

    async def outcomes(
        self, candidate: Candidate, cases: Sequence[CaseId], replicates: int
    ) -> Sequence[CaseOutcome]:
        """See `Evaluator`. Raises: `BudgetExceeded` where the budget ends meanwhile."""
        made = self.flows.of(candidate)
        wanted = [(self._cases[each], n) for each in cases for n in range(replicates)]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.run(made, case, n)) for case, n in wanted]
        found = [
            self._claimed_outcome(digest_of_run(made, case, n), task.result())
            for (case, n), task in zip(wanted, tasks, strict=True)
        ]
        return [_averaged(found[at : at + replicates]) for at in range(0, len(found), replicates)]

    def calls_needed(self, candidate: Candidate, cases: Sequence[CaseId], replicates: int) -> int:
        """See `Evaluator`."""
        made = self.flows.of(candidate)
        known = self._claimed | self._unclaimed.keys()
        return sum(
            self.flows.bound(made, case)
            for case in (self._cases[each] for each in cases)
            for n in range(replicates)
            if digest_of_run(made, case, n) not in known
        )

    def most_calls(self, candidate: Candidate, cases: Sequence[CaseId], replicates: int) -> int:
        """The most model calls of a candidate on `cases`, whatever is known of it."""
        made = self.flows.of(candidate)
        return replicates * sum(self.flows.bound(made, self._cases[each]) for each in cases)

    def known(
        self, candidate: Candidate, cases: Sequence[CaseId], replicates: int
    ) -> list[CaseOutcome] | None:
        """The outcomes of a candidate that has run on all of `cases`; else None. Runs nothing."""
        made, found = self.flows.of(candidate), []
        for case in cases:
            digests = [digest_of_run(made, self._cases[case], n) for n in range(replicates)]
            if not self._claimed.issuperset(digests):
                return None
            runs = self.runs(candidate, [case], replicates)
            found.append(_averaged([_outcome(run, 0) for run in runs]))
        return found

    def runs(
        self, candidate: Candidate, cases: Sequence[CaseId], replicates: int
    ) -> list[CandidateRun]:
        """The runs of a candidate on cases that it has run on."""
        made, done = self.flows.of(candidate), self.record.done
        return [
            CandidateRun.of(done[digest_of_run(made, self._cases[each], n)])
            for each in cases
            for n in range(replicates)
        ]

    async def run(self, made: CandidateFlow, case: Case, replicate: int) -> CandidateRun:
        """One run of a candidate on a case: of the record where it has it."""
        digest = digest_of_run(made, case, replicate)
        if digest in self.record.done:
            return CandidateRun.of(self.record.done[digest])
        if digest not in self._running:  # else an equal document is running on it
            running = asyncio.create_task(self._fresh(made, case, replicate, digest))
            self._running[digest] = running
            running.add_done_callback(lambda ended: self._ended(digest, ended))
        return await asyncio.shield(self._running[digest])

    def _ended(self, digest: str, ended: asyncio.Task[CandidateRun]) -> None:
        del self._running[digest]
        if not ended.cancelled():
            ended.exception()  # who waited for it has seen it

    async def aclose(self) -> None:
        """Cancel what still runs."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    async def _fresh(
        self, made: CandidateFlow, case: Case, replicate: int, digest: str
    ) -> CandidateRun:
        node = self.begin(digest)
        traced = await self.traced(made, case, replicate, node, digest)
        run = self.summary(traced)
        self.record.finish(node, digest, asdict(run), unstored(traced.table))
        return run

    def summary(self, traced: TracedRun) -> CandidateRun:
        """What a run comes to."""
        found, result = traced.result, traced.result.scores.get(self._main)
        return CandidateRun(
            found.status if result is not None or found.status == "failed" else "unscored",
            0.0 if result is None else result.value,
            self.seconds(traced),
            found.usage.money,
            found.usage.tokens,
            traced.paid,
            max(0, traced.table.whole.requests - traced.paid.calls),
            self.record.elapsed_s,
            found.reason or found.unscored.get(self._main, ""),
            "" if result is None else result.feedback,
        )

    @property
    def _main(self) -> str:
        return self.flows.program.names[0]

    def begin(self, digest: str, kind: str = "candidate") -> NodeId:
        """The node of the record for a run that begins in the current step."""
        assert self._step is not None
        number = self._numbers.get(self._step, 0)
        self._numbers[self._step] = number + 1
        return self.record.start(self._step, f"run[{number}]", digest, kind)

    async def traced(
        self, made: CandidateFlow, case: Case, replicate: int, node: NodeId, digest: str
    ) -> TracedRun:
        """Run it through the table. Raises: `BudgetExceeded` where the budget ends meanwhile."""
        gate = self.gate(self.flows.most(made, case))
        trace, events = Trace(), list[Event]()
        item = self.flows.item(case, replicate)
        store = self.record.store(node, digest, gate.prompt_of)
        async with self._at_once:
            run = await self._table.run(
                made.evaluation,
                self.flows.inputs(case, replicate),
                replicate=replicate,
                seeded=False,
                by_place=True,
                waited=gate.waited_in,
                store=store,
                models=gate.models(self._models),
                clock=self._clock,
                limits=dict(self._slots.limits),
                concurrency=self._slots.workers,
                listeners=(events.append, trace),
                **self._settings,
            )
        self.check_budget()
        for place in run.hits:  # so that a case costs what it would cost without a table
            trace(NodeSpent(place, run.usage[place], trace.wall_s))
        if any(metric.after_run for metric in self.flows.program.metrics):
            result = await asyncio.to_thread(self.flows.read, item, trace)
        else:
            result = self.flows.read(item, trace)
        return TracedRun(result, run, events, gate, self._paid(run, digest))

    def gate(self, most: int) -> RunGate:
        """What the model calls of a run, at most so many, have to pass."""
        return RunGate(self._ledger, self._clock, most, self._model_slots)

    def check_budget(self) -> None:
        """Raises: `BudgetExceeded` where no call may begin any more: what failed for it is void."""
        if self._ledger.stopped:
            raise BudgetExceeded(self._ledger.stopped)

    def _paid(self, run: TableRun, digest: str) -> Spend:
        """What a run took now, and what it had taken in an earlier process before that died."""
        results = self.record.results
        own = [
            results[key].entry["cost"]["usage"]
            for key in run.hits.values()
            if self._is_own(key, digest)
        ]
        usage = sum((Usage(**each) for each in own), run.spent)
        return Spend(usage.requests, usage.tokens, usage.money)

    def _is_own(self, key: str, digest: str) -> bool:
        found = self.record.results.get(key)
        return found is not None and found.owner == digest

    def seconds(self, traced: TracedRun) -> float:
        """How long the workflow takes alone under the slots, from durations in the table."""
        try:
            found = recording(traced.events)
        except RunError:
            return 0.0
        own = {
            node: seconds
            for node, seconds in traced.table.seconds.items()
            if node.startswith(f"{PLACE}/")
        }
        timed(found, own)
        change = Change(self._slots.workers, limits=dict(self._slots.limits))
        return simulate(found, change).wall_s

    def _claimed_outcome(self, digest: str, run: CandidateRun) -> CaseOutcome:
        calls = self.claim(digest, run.paid, run.at_s)
        if calls is not None:
            self.saved += run.saved
        return _outcome(run, calls or 0)

    def is_claimed(self, digest: str) -> bool:
        """Whether a search has counted this result."""
        return digest in self._claimed

    def claim(self, digest: str, paid: Spend, at_s: float) -> int | None:
        """Count what was paid for a result, once; None where it is counted already."""
        if digest in self._claimed:
            return None
        self._claimed.add(digest)
        if (known := self._unclaimed.pop(digest, None)) is not None:
            self._budget.sunk -= known
        self._budget.pay(self.purpose, paid, at_s)
        return paid.calls


def recorded_paid(data: Mapping[str, Any]) -> Spend:
    """What a run of a candidate, or a proposer's question, has paid by its record."""
    return recorded_spend(data.get("run", data)["paid"])


def digest_of_run(made: CandidateFlow, case: Case, replicate: int) -> str:
    """What names a run of a candidate on a case, in every process."""
    text = f"{made.digest}\0{case.id}\0{replicate}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def unstored(run: TableRun) -> Usage:
    """What the nodes of a run used whose results are not in the table: they failed."""
    nodes = (node for node in run.usage if node not in run.fresh and node not in run.hits)
    return sum((run.usage[node] for node in nodes), Usage())


def _outcome(run: CandidateRun, calls: int) -> CaseOutcome:
    return CaseOutcome(run.score, run.seconds, run.cost, run.tokens, calls, run.scored)


def _averaged(outcomes: Sequence[CaseOutcome]) -> CaseOutcome:
    """The replicates of a case as one outcome."""
    if len(outcomes) == 1:
        return outcomes[0]
    scores = [each.score for each in outcomes if each.scored]
    return CaseOutcome(
        fmean(scores) if scores else 0.0,
        fmean(each.seconds for each in outcomes),
        fmean(each.cost for each in outcomes),
        round(fmean(each.tokens for each in outcomes)),
        sum(each.calls for each in outcomes),
        bool(scores),
    )
