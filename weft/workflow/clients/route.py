"""`use: route`: several models of the document behind one name; each call goes to the best."""

from __future__ import annotations

from collections.abc import Callable

from weft.core.errors import BuildError, UnknownReference
from weft.core.ports import ModelClient
from weft.planner.choice import (
    Predictor,
    Profile,
    RoutedModel,
    StaticPredictor,
    TrainedPredictor,
    Weights,
)
from weft.workflow.beside import file_beside
from weft.workflow.document.declarations import ModelSpec
from weft.workflow.document.defects import closest
from weft.workflow.document.routing import AmongSpec, PriceSpec, WeightsSpec
from weft.workflow.unit import Unit


def check(spec: ModelSpec) -> None:
    """What is wrong with the declaration alone is found when the document is read."""


def check_route(unit: Unit, name: str) -> None:
    """Check which models the choice `name` is among, and its predictor. Raises: `BuildError`."""
    _follow(unit, name, ())
    _predictor(unit, unit.document.models[name])


class Routes:
    """The choices of one source of models, each made once; their models are closed elsewhere."""

    def __init__(self, client: Callable[[Unit, str], ModelClient]) -> None:
        self._client = client
        self._made: dict[tuple[Unit, str], RoutedModel] = {}

    def client(self, unit: Unit, name: str) -> RoutedModel:
        """The choice that `unit` declares as `name`. Raises: `BuildError`, `ModelError`."""
        if (unit, name) not in self._made:
            self._made[unit, name] = make(unit, name, lambda each: self._client(unit, each))
        return self._made[unit, name]


def make(unit: Unit, name: str, client: Callable[[str], ModelClient]) -> RoutedModel:
    """The choice `name` over the clients that `client` gives.

    Raises: `BuildError`, `ModelError`.
    """
    check_route(unit, name)
    spec = unit.document.models[name]
    among, weights = spec.among or {}, spec.weights or WeightsSpec()
    return RoutedModel(
        {each: client(each) for each in among},
        {each: _profile(about) for each, about in among.items()},
        predictor=_predictor(unit, spec),
        weights=Weights(weights.money, weights.latency, weights.size),
        name=name,
    )


def _follow(unit: Unit, name: str, before: tuple[str, ...]) -> None:
    models = unit.document.models
    for each in models[name].among or ():
        if each not in models:
            there = [other for other in models if other != name]
            hint = closest(each, there) or "declare it under `models`"
            raise UnknownReference(f"there is no model called `{each}`", hint=hint)
        if each in (*before, name):
            raise BuildError(f"the choice `{each}` is among itself", hint="name other models")
        _follow(unit, each, (*before, name))


def _predictor(unit: Unit, spec: ModelSpec) -> Predictor:
    if spec.predictor is None:
        return StaticPredictor({})
    found = TrainedPredictor.load(file_beside(unit, spec.predictor))
    if not set(found.models) & set(spec.among or ()):
        raise BuildError(
            f"{spec.predictor} knows none of these models",
            hint=f"it knows: {', '.join(found.models)[:200]}",
        )
    return found


def _profile(about: AmongSpec) -> Profile:
    price = about.price or PriceSpec()
    return Profile(
        about.loss, price.prompt, price.completion, about.latency or 0.0, about.size or 0.0
    )


def among_of(unit: Unit, name: str) -> tuple[str, ...]:
    """The models that the choice `name` is among; none for what is no choice."""
    spec = unit.document.models.get(name)
    return tuple(spec.among or ()) if spec is not None else ()
