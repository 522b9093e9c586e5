"""Training of a route's predictor from recorded evaluations, and what it is worth on unseen cases.

Tryage (arXiv 2308.11601): the model with the least predicted loss plus weighted cost answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Literal, NamedTuple
from zlib import crc32

from weft.core.calls import CallId, ModelAnswered, ModelCalled
from weft.core.errors import InputError
from weft.core.ids import NodeId
from weft.evaluation.program import RUN, item_of
from weft.evaluation.record import read_evaluation
from weft.evaluation.statistics import Interval, bootstrap_mean
from weft.optimisation.paths import place_of, recorded_workflow
from weft.planner.choice import (
    CostWeights,
    LossPredictor,
    LossRow,
    ModelProfile,
    StaticPredictor,
    TrainedPredictor,
    rank,
    routing_text,
    train,
)
from weft.workflow.history.run_history import RunHistory

FOLDS: Final = 5
WEIGHTS: Final = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
_BINS: Final = 10


@dataclass(frozen=True, slots=True)
class RoutingExample:
    """What one model did with one case: its score from 0 to 1, its seconds, its US dollars."""

    case: str
    group: str
    prompt: str
    model: str
    score: float
    seconds: float = 0.0
    cost: float = 0.0


def routing_examples(
    history: RunHistory, metric: str | None = None, node: str | None = None
) -> list[RoutingExample]:
    """One example for each scored case of an evaluation and each model that it called.

    `metric`: else the main one. `node`: only calls of that node at the top. The score of a case
    counts for all models that it called, so that evaluations with one model each say most. Calls of
    routes are left out: they do not say which model answered.

    Raises: `InputError` where the run is no evaluation, `UnknownReference` for another metric.
    """
    result = read_evaluation(history)
    name = result.main if metric is None else metric
    result.means(name)  # an unknown metric is a mistake, not a case without a score
    document = recorded_workflow(history)
    declared = {} if document is None else document.models
    routes = {model for model, spec in declared.items() if spec.use == "route"}
    calls = _calls(history, node)
    found = []
    for place, case in enumerate(result.cases):
        if name not in case.scores:
            continue
        for model, call in calls.get(place, {}).items():
            if model not in routes:
                score = min(1.0, max(0.0, case.scores[name].value))
                about = (call.prompt, model, score, call.seconds, call.cost)
                found.append(RoutingExample(case.case, case.group or case.case, *about))
    return found


@dataclass(slots=True)
class _ModelUse:
    prompt: str
    seconds: float = 0.0
    cost: float = 0.0


def _calls(history: RunHistory, node: str | None) -> dict[int, dict[str, _ModelUse]]:
    """By item and model: the first prompt, and the sums of its calls' seconds and costs."""
    found: dict[int, dict[str, _ModelUse]] = {}
    begun: dict[tuple[NodeId, int, CallId], tuple[_ModelUse, float]] = {}
    for call in history.calls:
        item = item_of(call.node) if isinstance(call, ModelCalled | ModelAnswered) else None
        if item is None or item[1] != RUN or node not in (None, place_of(item[2])):
            continue
        if isinstance(call, ModelCalled):
            own = found.setdefault(item[0], {})
            known = own.setdefault(call.model, _ModelUse(routing_text(call.request)))
            begun[call.node, call.attempt, call.call] = known, call.at_s
        elif isinstance(call, ModelAnswered) and call.completion is not None:
            entry = begun.pop((call.node, call.attempt, call.call), None)
            if entry is not None:
                entry[0].seconds += call.at_s - entry[1]
                entry[0].cost += call.completion.usage.money
    return found


@dataclass(frozen=True, slots=True)
class RoutedCase:
    """A case with the score and cost that each of the models had on it."""

    group: str
    prompt: str
    scores: Mapping[str, float]
    costs: Mapping[str, float]


def routed_cases(
    examples: Sequence[RoutingExample], costs: Literal["money", "latency"] = "latency"
) -> list[RoutedCase]:
    """The cases that every model was measured on; replicates are averaged."""
    models = dict.fromkeys(each.model for each in examples)
    by_case: dict[str, dict[str, list[RoutingExample]]] = {}
    for each in examples:
        by_case.setdefault(each.case, {}).setdefault(each.model, []).append(each)
    return [
        RoutedCase(
            of[next(iter(models))][0].group,
            of[next(iter(models))][0].prompt,
            {name: fmean(each.score for each in of[name]) for name in models},
            {
                name: fmean(each.cost if costs == "money" else each.seconds for each in of[name])
                for name in models
            },
        )
        for of in by_case.values()
        if of.keys() == models.keys()
    ]


def rows_of(cases: Sequence[RoutedCase]) -> list[LossRow]:
    """What predictors learn from; the loss is 1 - score."""
    return [
        LossRow(case.prompt, model, 1 - score)
        for case in cases
        for model, score in case.scores.items()
    ]


def train_router(examples: Sequence[RoutingExample]) -> TrainedPredictor:
    """A predictor for `use: route`; deterministic. It abstains where there is too little to learn.

    Raises: `InputError` for examples of fewer than two models.
    """
    models = sorted({each.model for each in examples})
    if len(models) < 2:
        hint = "evaluate the same cases with another model, and name both runs"
        raise InputError(f"a route needs two models; the runs have {models}", hint=hint)
    return _trained([LossRow(each.prompt, each.model, 1 - each.score) for each in examples])


def _trained(rows: Sequence[LossRow]) -> TrainedPredictor:
    return train(rows, characters=True, cautious=True)


def best_single(rows: Sequence[LossRow]) -> StaticPredictor:
    """The rival that always takes the model with the least mean loss."""
    losses: dict[str, list[float]] = {}
    for row in rows:
        losses.setdefault(row.model, []).append(row.loss)
    return StaticPredictor({model: fmean(found) for model, found in losses.items()})


Trainer = Callable[[Sequence[LossRow]], LossPredictor]


def out_of_fold(
    cases: Sequence[RoutedCase], trainer: Trainer, folds: int = FOLDS
) -> list[Mapping[str, float]]:
    """The losses that a predictor expects of each case, learnt from the folds without its group."""
    fold = [crc32(case.group.encode("utf-8", "surrogatepass")) % folds for case in cases]
    found: list[Mapping[str, float]] = [{}] * len(cases)
    for number in set(fold):
        rows = rows_of([case for case, own in zip(cases, fold, strict=True) if own != number])
        if not rows:
            raise InputError("all cases are of one group", hint="give groups, or leave them out")
        predictor = trainer(rows)
        for at, case in enumerate(cases):
            if fold[at] == number:
                found[at] = predictor.losses(case.prompt)
    return found


class PolicyPoint(NamedTuple):
    """A policy on all cases: score and cost of the chosen models, the share of cases on which the
    chosen one scored best (ties count), and the scores below those of the best; one `chosen` each.
    """

    score: Interval
    cost: float
    hits: Interval
    regret: Interval
    chosen: tuple[str, ...]


def policy_point(
    cases: Sequence[RoutedCase], losses: Sequence[Mapping[str, float]], weight: float = 0.0
) -> PolicyPoint:
    """What choosing by predicted losses plus `weight` times the mean costs comes to; intervals are
    clustered by group.
    """
    models = list(cases[0].scores)
    means = {name: fmean(case.costs[name] for case in cases) for name in models}
    profiles = {name: ModelProfile(latency_s=mean) for name, mean in means.items()}
    weights = CostWeights(latency=weight)
    chosen = tuple(rank(own, profiles, weights)[0].model for own in losses)
    return _point(cases, chosen)


def _point(cases: Sequence[RoutedCase], chosen: tuple[str, ...]) -> PolicyPoint:
    groups = [case.group for case in cases]
    pairs = list(zip(cases, chosen, strict=True))
    own = [case.scores[name] for case, name in pairs]
    best = [max(case.scores.values()) for case in cases]

    def interval(values: Sequence[float]) -> Interval:
        return bootstrap_mean(values, groups=groups)

    return PolicyPoint(
        interval(own),
        fmean(case.costs[name] for case, name in pairs),
        interval([float(a >= b) for a, b in zip(own, best, strict=True)]),
        interval([b - a for a, b in zip(own, best, strict=True)]),
        chosen,
    )


@dataclass(frozen=True, slots=True)
class RouterValidation:
    """Cross-validated by groups: what a router like the trained one is worth on unseen cases.

    `gain`: score of the router minus that of the best single model. `calibration`: the mean
    distance between predicted success and score over ten bins (expected calibration error).
    `brier`: the mean squared error of predicted success; `brier_of_means`: that of the means alone.
    `front`: (weight, point) for the weights of cost that no other beats in score and cost.
    """

    cases: int
    router: PolicyPoint
    single: PolicyPoint
    gain: Interval
    random_score: float
    oracle_score: float
    calibration: float
    brier: float
    brier_of_means: float
    front: tuple[tuple[float, PolicyPoint], ...]


def validate_router(cases: Sequence[RoutedCase], folds: int = FOLDS) -> RouterValidation:
    """Train on all groups but a fifth, choose on that fifth, and so on. Raises: `InputError`."""
    if len({case.group for case in cases}) < 2 * folds:
        hint = "the router can be trained; its worth cannot be shown"
        raise InputError(f"fewer than {2 * folds} groups were measured with all models", hint=hint)
    losses = out_of_fold(cases, _trained, folds)
    means = out_of_fold(cases, best_single, folds)
    router, single = policy_point(cases, losses), policy_point(cases, means)
    gains = [
        case.scores[a] - case.scores[b]
        for case, a, b in zip(cases, router.chosen, single.chosen, strict=True)
    ]
    points = [(weight, policy_point(cases, losses, weight)) for weight in WEIGHTS]
    return RouterValidation(
        len(cases),
        router,
        single,
        bootstrap_mean(gains, groups=[case.group for case in cases]),
        fmean(fmean(case.scores.values()) for case in cases),
        fmean(max(case.scores.values()) for case in cases),
        calibration_error(cases, losses),
        _brier(cases, losses),
        _brier(cases, means),
        tuple(_front(points)),
    )


def _front(points: Sequence[tuple[float, PolicyPoint]]) -> list[tuple[float, PolicyPoint]]:
    kept: list[tuple[float, PolicyPoint]] = []
    for weight, point in sorted(points, key=lambda each: (each[1].cost, -each[1].score.mean)):
        if not kept or point.score.mean > kept[-1][1].score.mean:
            kept.append((weight, point))
    return kept


def _pairs(
    cases: Sequence[RoutedCase], losses: Sequence[Mapping[str, float]]
) -> list[tuple[float, float]]:
    """Predicted success, and score."""
    return [
        (min(1.0, max(0.0, 1 - own[model])), score)
        for case, own in zip(cases, losses, strict=True)
        for model, score in case.scores.items()
    ]


def _brier(cases: Sequence[RoutedCase], losses: Sequence[Mapping[str, float]]) -> float:
    return fmean((predicted - score) ** 2 for predicted, score in _pairs(cases, losses))


def calibration_error(cases: Sequence[RoutedCase], losses: Sequence[Mapping[str, float]]) -> float:
    """Expected calibration error of predicted success, in ten bins of equal width."""
    bins: dict[int, list[tuple[float, float]]] = {}
    pairs = _pairs(cases, losses)
    for predicted, score in pairs:
        bins.setdefault(min(_BINS - 1, int(predicted * _BINS)), []).append((predicted, score))
    off = (abs(sum(a - b for a, b in found)) for found in bins.values())
    return sum(off) / len(pairs)
