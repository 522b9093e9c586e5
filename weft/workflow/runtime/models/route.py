"""`use: route`: several models of the document behind one name; each call goes to the best one."""

from __future__ import annotations

from collections.abc import Callable

from weft.core.errors import BuildError
from weft.core.ports import ModelClient
from weft.planner.choice import (
    CostWeights,
    LossPredictor,
    ModelProfile,
    RoutedModel,
    StaticPredictor,
    TrainedPredictor,
)
from weft.workflow.document.spec.declarations import ModelSpec
from weft.workflow.document.spec.model_settings import AmongSpec, PriceSpec, WeightsSpec
from weft.workflow.document.unit import Unit, file_beside
from weft.workflow.runtime.models.composed import check_behind


def check_made(unit: Unit, name: str) -> None:
    """Check the models and the predictor of the route `name`. Raises: `BuildError`."""
    check_behind(unit, name)
    _predictor(unit, unit.document.models[name])


def make(unit: Unit, name: str, client: Callable[[str], ModelClient]) -> RoutedModel:
    """The route `name` over the clients that `client` returns.

    Raises: `BuildError`, `ModelError`.
    """
    check_made(unit, name)
    spec = unit.document.models[name]
    among, weights = spec.among or {}, spec.weights or WeightsSpec()
    return RoutedModel(
        {each: client(each) for each in among},
        {each: _profile(about) for each, about in among.items()},
        predictor=_predictor(unit, spec),
        weights=CostWeights(weights.money, weights.latency, weights.size),
        name=name,
    )


def _predictor(unit: Unit, spec: ModelSpec) -> LossPredictor:
    if spec.predictor is None:
        return StaticPredictor({})
    predictor = TrainedPredictor.load(file_beside(unit, spec.predictor))
    if not set(predictor.models) & set(spec.among or ()):
        raise BuildError(
            f"{spec.predictor} knows none of these models",
            hint=f"it knows: {', '.join(predictor.models)[:200]}",
        )
    return predictor


def _profile(about: AmongSpec) -> ModelProfile:
    price = about.price or PriceSpec()
    return ModelProfile(
        about.loss, price.prompt, price.completion, about.latency or 0.0, about.size or 0.0
    )
