"""`use: think`: another model of the document, which answers by a strategy."""

from __future__ import annotations

from collections.abc import Callable

from weft.core.ports import ModelClient
from weft.workflow.clients.behind import check_behind, thinker
from weft.workflow.declared_model import declared_model
from weft.workflow.document.declarations import ModelSpec
from weft.workflow.thinking_options import options_of, thinks_already
from weft.workflow.thought_model import ThoughtModel, refuse_thinker
from weft.workflow.unit import Unit


def check(spec: ModelSpec) -> None:
    """What is wrong with the declaration alone is found when the document is read."""


def check_made(unit: Unit, name: str) -> None:
    """Check what the model `name` thinks with; not the strategy. Raises: `BuildError`."""
    spec = unit.document.models[name]
    check_behind(unit, name)
    if (other := thinker(unit, spec.model)) is not None:
        raise thinks_already(other)


def make(unit: Unit, name: str, client: Callable[[str], ModelClient]) -> ThoughtModel:
    """The model `name` of `unit`, over the one that `client` gives. Raises: `BuildError`."""
    check_made(unit, name)
    spec = unit.document.models[name]
    assert spec.think is not None
    options = options_of(unit, spec.think, seed=unit.document.run.seed)
    given = client(spec.model)
    refuse_thinker(given)
    base = declared_model(given, unit, spec.model)
    return ThoughtModel(base, spec.think.strategy, options, name=name)
