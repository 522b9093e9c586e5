"""Reads an evaluation from the events of its run, and computes what metrics need a trace for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from weft.core.errors import BuildError, InputError, TypeMismatch, WeftError
from weft.core.events import Outcome
from weft.core.values import Usage
from weft.engine.analysis.trace import NodeTrace, Trace
from weft.evaluation.metric import Score, score_from
from weft.evaluation.metrics import CHECK, Metric, metrics_of
from weft.evaluation.notes import NOTES, is_evaluation
from weft.evaluation.program import ITEMS, RUN, Environment, item_of, score_node
from weft.evaluation.result import CaseResult, EvaluationResult
from weft.workflow.compile.node_functions import call_function
from weft.workflow.history.recorded_workflow import question_folder
from weft.workflow.history.run_history import RunHistory
from weft.workflow.runtime.blocking import run_blocking

_AT_ONCE: Final = 8
"""Asynchronous metrics that are computed at once after the run."""


def read_evaluation(
    history: RunHistory, metrics: Sequence[Metric] = (), *, compute: bool = True
) -> EvaluationResult:
    """The evaluation that a run recorded; with `metrics` scored by these instead.

    No model is called. Metrics that need a trace are computed, by functions that the record names,
    unless `compute` is false. Raises: `InputError` where the run is no evaluation, or a metric
    needs a model.
    """
    header = history.header
    if not is_evaluation(header.settings):
        hint = "`weft eval FLOW` records one; `weft runs` lists the runs"
        raise InputError(f"{history.run} is no evaluation", hint=hint)
    folder = question_folder(header) or Path.cwd()
    items = header.inputs.get(ITEMS)
    rescored = tuple(metrics)
    reader = _RecordReader(header.settings[NOTES], items if isinstance(items, list) else [], folder)
    reader.computes = compute
    return reader.result(header.run, history.trace, rescored, ended=history.ended is not None)


def evaluation_of(
    run: str, notes: Mapping[str, Any], items: Sequence[Any], trace: Trace, known: Sequence[Metric]
) -> EvaluationResult:
    """The evaluation of a run in this process, from its trace; `known` are its metrics."""
    reader = _RecordReader(notes[NOTES], items, Path.cwd(), known)
    ended = trace.status in ("succeeded", "partial", "failed")
    return reader.result(run, trace, (), ended=ended)


@dataclass(slots=True)
class _Item:
    """What the record has of one item."""

    run: NodeTrace | None = None
    scores: dict[str, NodeTrace] = field(default_factory=dict)
    inside: dict[str, NodeTrace] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)


class _RecordReader:
    """Reads the items of one evaluation; `known`: its metrics, where this process has them."""

    def __init__(
        self,
        about: Mapping[str, Any],
        items: Sequence[Any],
        folder: Path,
        known: Sequence[Metric] = (),
    ) -> None:
        self._about = about
        self._items = items
        self._folder = folder
        self.computes = True
        self._known = {metric.name: metric for metric in known}
        around = {key: about.get(key) for key in ("prepare", "check", "tear_down")}
        self._environment = Environment(**around)
        self._check = self._environment.check

    def result(
        self, run: str, trace: Trace, rescored: tuple[Metric, ...], *, ended: bool
    ) -> EvaluationResult:
        names = tuple(metric.name for metric in rescored) or tuple(self._about.get("metrics", {}))
        late = {metric.name: metric for metric in rescored} or (
            self._late() if self.computes else {}
        )
        self._check = None if rescored else self._environment.check
        found = self._gathered(trace)
        cases = [self._case(item, found[place], names) for place, item in enumerate(self._items)]
        if late:
            cases = run_blocking(lambda: self._scored(cases, found, late))
        if self._check is not None:
            names = (*names, CHECK)
        return EvaluationResult(
            run,
            str(self._about.get("flow", "")),
            self._about.get("data", {}),
            names,
            names[0] if names else CHECK,
            int(self._about.get("replicates", 1)),
            tuple(_settled(case, names) for case in cases),
            trace.usage,
            trace.wall_s,
            ended and all(case.status != "unfinished" for case in cases),
        )

    def _late(self) -> dict[str, Metric]:
        """The metrics that are computed from the record."""
        found: dict[str, Metric] = {}
        for name, spec in self._about.get("metrics", {}).items():
            try:
                metric = self._known.get(name) or metrics_of({name: spec}, self._folder)[0]
            except WeftError:
                continue  # its score is in the record, if it is no metric with a trace
            if metric.after_run:
                found[name] = metric
        return found

    def _gathered(self, trace: Trace) -> list[_Item]:
        found = [_Item() for _ in self._items]
        for node in trace.nodes.values():
            place = item_of(node.info.id)
            if place is None or place[0] >= len(found):
                continue
            item, (_, name, inside) = found[place[0]], place
            if name == RUN:
                if node.usage.requests or node.usage.tokens or node.usage.money:
                    item.usage += node.usage
                if inside:
                    item.inside[inside] = node
                else:
                    item.run = node
            elif name and not inside:
                item.scores[name] = node
        return found

    def _case(self, given: Any, item: _Item, names: Iterable[str]) -> CaseResult:
        case, node = given["case"], item.run
        outcome = None if node is None else node.outcome
        made = CaseResult(
            str(case["id"]),
            int(given["replicate"]),
            "scored",
            str(case.get("group", "")),
            wall_s=0.0 if node is None else sum(each.seconds(0.0) for each in node.phases),
            usage=item.usage,
        )
        broken = self._broken(item)
        if broken:
            return replace(made, status="unscored", reason=broken)
        if outcome is None or outcome.status in ("cancelled", "skipped"):
            return replace(made, status="unfinished")
        if not outcome.ok:
            why = _first_failure(item) or str(outcome.failure or outcome.status)
            scores = {name: Score(0.0, why) for name in self._all(names)}
            return replace(made, status="failed", reason=why, scores=scores)
        made = replace(made, outputs=outcome.value)
        return self._with_scores(made, item, names)

    def _all(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(names) if self._check is None else (*names, CHECK)

    def _broken(self, item: _Item) -> str:
        for name in self._environment.around:
            node = item.inside.get(name)
            if node is not None and node.outcome is not None and node.outcome.status == "failed":
                return f"{name}: {node.outcome.failure}"
        return ""

    def _with_scores(self, made: CaseResult, item: _Item, names: Iterable[str]) -> CaseResult:
        scores: dict[str, Score] = {}
        missing: dict[str, str] = {}
        nodes = {name: item.scores.get(score_node(name)) for name in names}
        if self._check is not None:
            nodes[CHECK] = item.inside.get(self._check)
        for name, node in nodes.items():
            outcome = None if node is None else node.outcome
            try:
                scores[name] = _score_in(outcome)
            except TypeMismatch as error:
                missing[name] = _judge_failure(item, name) or error.message
        return replace(made, scores=scores, unscored=missing)

    async def _scored(
        self, cases: list[CaseResult], found: list[_Item], late: Mapping[str, Metric]
    ) -> list[CaseResult]:
        """`cases` with the scores of the metrics `late`, in order."""
        slots = asyncio.Semaphore(_AT_ONCE)
        made = list(cases)

        async def score(place: int) -> None:
            async with slots:
                made[place] = await self._rescored(cases[place], place, found[place], late)

        async with asyncio.TaskGroup() as tasks:
            for place, case in enumerate(cases):
                if case.status in ("scored", "unscored") and case.outputs is not None:
                    tasks.create_task(score(place))
        return made

    async def _rescored(
        self, case: CaseResult, place: int, item: _Item, late: Mapping[str, Metric]
    ) -> CaseResult:
        scores, missing = dict(case.scores), dict(case.unscored)
        for name, metric in late.items():
            scores.pop(name, None)
            missing.pop(name, None)
            try:
                scores[name] = await _called(metric, self._items[place]["case"], case, item)
            except Exception as error:  # noqa: BLE001 - a metric's own failure says nothing of a case
                missing[name] = f"{type(error).__name__}: {error}"
        return replace(case, scores=scores, unscored=missing)


def _settled(case: CaseResult, names: tuple[str, ...]) -> CaseResult:
    """The case as unscored where it has no score of any metric."""
    if case.status != "scored":
        return case
    if not any(name in case.scores for name in names):
        reason = next(iter(case.unscored.values()), "nothing scored it")
        return replace(case, status="unscored", reason=reason)
    return case


def _judge_failure(item: _Item, metric: str) -> str:
    """The failure of a node that asks a judge, which its verdict follows from."""
    for name, node in item.scores.items():
        asks = name.startswith(f"{score_node(metric)}_")
        if asks and node.outcome is not None and node.outcome.failure is not None:
            return f"the judge: {node.outcome.failure}"
    return ""


def _first_failure(item: _Item) -> str:
    """The failure of the node in a case that failed first, which others follow from."""
    failed = [
        (node.ended, place, node.outcome.failure)
        for place, node in item.inside.items()
        if node.ended is not None and node.outcome is not None and node.outcome.status == "failed"
    ]
    if not failed:
        return ""
    _, place, failure = min(failed, key=lambda each: each[:2])
    return f"{place}: {failure}"


def _score_in(outcome: Outcome | None) -> Score:
    """The score in an outcome. Raises: `TypeMismatch` with the reason why there is none."""
    if outcome is None:
        raise TypeMismatch("it was not computed")
    if outcome.failure is not None or not outcome.ok:
        raise TypeMismatch(str(outcome.failure or outcome.status))
    return score_from(outcome.value)


async def _called(metric: Metric, case: Any, result: CaseResult, item: _Item) -> Score:
    assert metric.function is not None
    named: dict[str, Any] = {
        metric.parameters[0]: case,
        metric.parameters[1]: result.outputs,
    }
    if metric.is_built_in:
        named["options"] = metric.options
    if metric.after_run:
        named[metric.parameters[2]] = _trace_data(result, item)
    return score_from(await call_function(metric.function, (), named, metric.name))


def _trace_data(result: CaseResult, item: _Item) -> dict[str, Any]:
    """What a metric sees of how a case was answered: totals, and its nodes by their places."""
    nodes = {
        place: {
            "status": node.outcome.status,
            "value": node.outcome.value,
            "wall_s": sum(each.seconds(0.0) for each in node.phases),
            "tokens": node.usage.tokens,
            "completion_tokens": node.usage.completion_tokens,
        }
        for place, node in item.inside.items()
        if node.outcome is not None
    }
    usage = result.usage
    return {
        "wall_s": result.wall_s,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "tokens": usage.tokens,
        "cost_usd": usage.money,
        "nodes": nodes,
    }


def check_offline(metrics: Sequence[Metric]) -> None:
    """Raises: `BuildError` for a metric that needs a model, which a recorded run does not call."""
    for metric in metrics:
        if metric.function is None:
            hint = "evaluate again with it: weft eval FLOW --metric judge:MODEL"
            raise BuildError(f"the metric `{metric.name}` asks a model", hint=hint)
