"""Evaluations and studies of a journal as plain data, for the page of `weft ui`.

No code of a workflow runs: scores that a metric computes from the trace after a run are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from threading import Lock
from typing import Any, Final, Generic, TypeVar

from weft.core.errors import InputError, WeftError
from weft.core.ids import RunId
from weft.core.ports.journal import Journal, RunHeader, RunSummary
from weft.evaluation import notes as evaluations
from weft.evaluation.compare import EvaluationComparison, compare_evaluations
from weft.evaluation.export import comparison_data, evaluation_data
from weft.evaluation.program import CASES, RUN
from weft.evaluation.record import read_evaluation
from weft.evaluation.result import CaseResult, EvaluationResult
from weft.optimisation import notes as studies
from weft.optimisation.optimise import recorded_result
from weft.serving.ui import ExperimentReaders
from weft.workflow.history.run_history import read_history

_MOST_RUNS: Final = 2_000
_MOST_CANDIDATES: Final = 100
_CHARS: Final = 400
V = TypeVar("V")


class _Recent(Generic[V]):
    """The values of the last `most` runs that were read, by run and number of records."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[tuple[RunId, int], V] = {}
        self._lock = Lock()

    def get(self, key: tuple[RunId, int], read: Callable[[], V]) -> V:
        """The value of `key`; `read` makes it where it is not kept."""
        with self._lock:
            if key not in self._kept:
                made = read()
                if len(self._kept) >= self._most:
                    del self._kept[next(iter(self._kept))]
                self._kept[key] = made
            return self._kept[key]


class JournalExperiments:
    """Reads experiments and keeps the last few: a page asks for parts of the same one."""

    def __init__(self) -> None:
        self._evaluations = _Recent[EvaluationResult](4)
        self._briefs = _Recent[dict[str, Any]](500)

    @property
    def readers(self) -> ExperimentReaders:
        """What the page's server takes."""
        return ExperimentReaders(self.latest, self.evaluation, self.study)

    def latest(
        self, journal: Journal, after: int, limit: int
    ) -> tuple[list[Mapping[str, Any]], bool]:
        """So many experiments, the newest first, and whether there are more."""
        found = list(islice(_experiments(journal), after, after + limit + 1))
        rows: list[Mapping[str, Any]] = [
            {
                "run": summary.run,
                "kind": kind,
                "flow": summary.flow.removesuffix(f"-{kind}"),
                "wall": summary.wall,
                "ended_wall": summary.ended_wall,
                "standing": summary.standing,
                **self._brief(journal, summary, kind),
            }
            for kind, summary, _ in found[:limit]
        ]
        return rows, len(found) > limit

    def _brief(self, journal: Journal, summary: RunSummary, kind: str) -> dict[str, Any]:
        key = summary.run, summary.records
        return self._briefs.get(key, lambda: self._figures(journal, summary.run, kind))

    def _figures(self, journal: Journal, run: RunId, kind: str) -> dict[str, Any]:
        try:
            if kind == studies.NOTES:
                return _study_brief(self.study(journal, run))
            return _brief(self._result(journal, run))
        except WeftError as error:  # one broken record does not hide the others
            return {"trouble": error.message}

    def evaluation(
        self, journal: Journal, run: RunId, baseline: RunId | None, after: int, limit: int
    ) -> dict[str, Any]:
        """An evaluation with so many cases; those that lost against the baseline first."""
        result = self._result(journal, run)
        found = None
        if baseline is not None:
            found = compare_evaluations(self._result(journal, baseline), result)
        data = evaluation_data(result, outputs=False)
        ordered = _ordered(result, found)
        data["cases"] = [_case(result, place, by) for place, by in ordered[after : after + limit]]
        data["more"] = len(ordered) > after + limit
        data["comparison"] = None if found is None else _comparison(found)
        data["candidates"] = _baselines(journal, run)
        return data

    def _result(self, journal: Journal, run: RunId) -> EvaluationResult:
        key = run, journal.summary(run).records  # a run that goes on is read again
        return self._evaluations.get(
            key, lambda: read_evaluation(read_history(journal, run), compute=False)
        )

    def study(self, journal: Journal, run: RunId) -> dict[str, Any]:
        """A study. Raises: `InputError` where it has not ended."""
        return recorded_result(read_history(journal, run)).plain()


def _experiments(journal: Journal) -> Iterator[tuple[str, RunSummary, RunHeader]]:
    for summary in journal.runs(limit=_MOST_RUNS):
        for notes, holds in (
            (evaluations, evaluations.is_evaluation),
            (studies, studies.is_study),
        ):
            if summary.flow.endswith(notes.SUFFIX):
                header = journal.header(summary.run)
                if holds(header.settings):
                    yield notes.NOTES, summary, header


def _baselines(journal: Journal, run: RunId) -> list[dict[str, Any]]:
    """Other evaluations of the same workflow, the newest first."""
    flow = journal.header(run).flow
    found = (
        {"run": summary.run, "wall": summary.wall}
        for kind, summary, _ in _experiments(journal)
        if kind == evaluations.NOTES and summary.flow == flow and summary.run != run
    )
    return list(islice(found, _MOST_CANDIDATES))


def _brief(result: EvaluationResult) -> dict[str, Any]:
    if result.main not in result.metrics:
        raise InputError(f"{result.run} has no metric")
    interval = result.summary().interval
    return {
        "data": str(result.data.get("name", "")),
        "metric": result.main,
        "mean": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "cases": len(result.groups),
        "cost_usd": result.usage.money,
    }


def _study_brief(study: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "data": str(study["data"].get("name", "")),
        "metric": study["metric"],
        "cases": sum(study["splits"].values()),
        "cost_usd": sum(each["money"] for each in study["spend"].values()),
        "verdict": study["verdict"]["kind"],
    }


def _ordered(
    result: EvaluationResult, found: EvaluationComparison | None
) -> list[tuple[int, float]]:
    """The places of the results with their change: lost, won, the others; each largest first."""
    moved = {} if found is None else {**found.main.lost, **found.main.won}
    placed = [(place, moved.get(case.case, 0.0)) for place, case in enumerate(result.cases)]
    return sorted(placed, key=lambda each: (each[1] == 0, each[1] > 0, -abs(each[1])))


def _case(result: EvaluationResult, place: int, moved: float) -> dict[str, Any]:
    case: CaseResult = result.cases[place]
    said = case.scores[result.main].feedback if result.main in case.scores else ""
    why = case.reason or said or "; ".join(case.unscored.values())
    return {
        "id": case.case[:_CHARS],
        "replicate": case.replicate,
        "status": case.status,
        "scores": {name: score.value for name, score in case.scores.items()},
        "change": moved,
        "wall_s": case.wall_s,
        "tokens": case.usage.tokens,
        "cost_usd": case.usage.money,
        "why": why[:_CHARS],
        "node": f"{CASES}[{place}]/{RUN}",
    }


def _comparison(found: EvaluationComparison) -> dict[str, Any]:
    """The comparison with counts in place of the cases, which their own table has."""
    data = comparison_data(found)
    for each in data["metrics"].values():
        each["lost"], each["won"] = len(each["lost"]), len(each["won"])
    return data
