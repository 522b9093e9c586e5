"""Models of a document that are composed of other models of it: routes, and thinking models."""

from __future__ import annotations

from collections.abc import Callable

from weft.core.errors import CycleError, UnknownReference
from weft.core.ports import ModelClient
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.models import COMPOSED, client_kind


def check_behind(unit: Unit, name: str) -> None:
    """Check that all models behind `name` exist, and that it is not behind itself.

    Raises: `UnknownReference`, `CycleError`.
    """
    _follow(unit, name, ())


def thinker(unit: Unit, name: str) -> str | None:
    """The first thinking model among `name` and the models behind it."""
    waiting, visited = [name], set[str]()
    for each in waiting:
        spec = unit.document.models.get(each)
        if spec is None or each in visited:
            continue
        if spec.use == "think":
            return each
        visited.add(each)
        waiting += spec.behind
    return None


def _follow(unit: Unit, name: str, before: tuple[str, ...]) -> None:
    models = unit.document.models
    for each in models[name].behind:
        if each not in models:
            others = [other for other in models if other != name]
            hint = choice_hint(each, others) or "declare it under `models`"
            raise UnknownReference(f"there is no model called `{each}`", hint=hint)
        if each in (*before, name):
            raise CycleError(f"`{each}` is made of itself", hint="name other models")
        _follow(unit, each, (*before, name))


class ComposedModels:
    """Composed models of one source, each made once. Their parts are closed by the source."""

    def __init__(self, client: Callable[[Unit, str], ModelClient]) -> None:
        self._client = client
        self._made: dict[tuple[Unit, str], ModelClient] = {}

    def client(self, unit: Unit, name: str) -> ModelClient:
        """The model that `unit` declares as `name`. Raises: `BuildError`, `ModelError`."""
        if (unit, name) not in self._made:
            kind = client_kind(unit.document.models[name].use)
            self._made[unit, name] = kind.make(unit, name, lambda each: self._client(unit, each))
        return self._made[unit, name]


def is_composed(unit: Unit, name: str) -> bool:
    """True for a model that is composed of others."""
    spec = unit.document.models.get(name)
    return spec is not None and spec.use in COMPOSED


def check_composed(unit: Unit, name: str) -> None:
    """Check the models behind `name`. Raises: `BuildError`, whose message names the key."""
    client_kind(unit.document.models[name].use).check_made(unit, name)
