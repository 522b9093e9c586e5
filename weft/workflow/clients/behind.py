"""The models that stand behind a model of a document: those of a choice, that of a thinking one."""

from __future__ import annotations

from weft.core.errors import CycleError, UnknownReference
from weft.workflow.document.defects import closest
from weft.workflow.unit import Unit


def check_behind(unit: Unit, name: str) -> None:
    """Check that all models behind `name` are there, and that it is not behind itself.

    Raises: `UnknownReference`, `CycleError`.
    """
    _follow(unit, name, ())


def thinker(unit: Unit, name: str) -> str | None:
    """The first model that thinks, of `name` and those behind it."""
    waiting, seen = [name], set[str]()
    for each in waiting:
        spec = unit.document.models.get(each)
        if spec is None or each in seen:
            continue
        if spec.use == "think":
            return each
        seen.add(each)
        waiting += spec.behind
    return None


def _follow(unit: Unit, name: str, before: tuple[str, ...]) -> None:
    models = unit.document.models
    for each in models[name].behind:
        if each not in models:
            there = [other for other in models if other != name]
            hint = closest(each, there) or "declare it under `models`"
            raise UnknownReference(f"there is no model called `{each}`", hint=hint)
        if each in (*before, name):
            raise CycleError(f"`{each}` is made of itself", hint="name other models")
        _follow(unit, each, (*before, name))
