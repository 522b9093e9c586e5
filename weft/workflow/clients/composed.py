"""Models of a document that are made of others of it: choices, and models that think."""

from __future__ import annotations

from collections.abc import Callable

from weft.core.ports import ModelClient
from weft.workflow.clients import COMPOSED, client_kind
from weft.workflow.unit import Unit


class Composed:
    """Those of one source of models, each made once; what they are made of is closed elsewhere."""

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
    """True for a model that is made of others."""
    spec = unit.document.models.get(name)
    return spec is not None and spec.use in COMPOSED


def check_composed(unit: Unit, name: str) -> None:
    """Check what the model is made of. Raises: `BuildError`, whose message names the key."""
    client_kind(unit.document.models[name].use).check_made(unit, name)
