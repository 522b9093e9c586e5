"""Moderators of a document's models: their checks, and the moderated clients."""

from __future__ import annotations

from collections.abc import Callable

from weft.core.errors import BuildError, CycleError, UnknownReference
from weft.core.ports import ModelClient
from weft.workflow.document.spec.declarations import ModelSpec
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.tools.functions import function_of


def check_moderator(unit: Unit, name: str) -> None:
    """Check the moderator of the model `name`, if it has one.

    Raises: `BuildError`, `ToolNotFound`.
    """
    spec = unit.document.models[name].moderator
    if spec is None:
        return
    if spec.call is not None:
        function_of(unit, spec.call)
    if spec.model is not None:
        _check_judge(unit, name, spec.model)


def with_moderator(
    unit: Unit, name: str, client: ModelClient, others: Callable[[str], ModelClient]
) -> ModelClient:
    """`client` with the moderator that `unit` declares for `name`, if any.

    Raises: `BuildError`, `ToolNotFound`.
    """
    declared = unit.document.models.get(name)
    spec = None if declared is None else declared.moderator
    if spec is None:
        return client
    from weft.serving.local import LocalModel
    from weft.serving.moderation import FunctionJudge, Judge, ModeratedModel, ModerationJudge
    from weft.serving.moderation.judges import RULES

    judge: Judge
    if spec.call is not None:
        judge = FunctionJudge(function_of(unit, spec.call))
    else:
        assert spec.model is not None
        _check_judge(unit, name, spec.model)
        judge = ModerationJudge(others(spec.model), spec.rules or RULES)
    by_blocks = isinstance(client, LocalModel) and client.diffuses
    return ModeratedModel(client, judge, spec.every or (1 if by_blocks else None))


def _check_judge(unit: Unit, name: str, judge: str) -> None:
    """Check that the model `judge` exists and does not depend on `name`, its own verdict."""
    models = unit.document.models
    if judge not in models:
        hint = choice_hint(judge, [other for other in models if other != name])
        raise UnknownReference(
            f"the moderator: there is no model called `{judge}`",
            hint=hint or "declare it under `models`",
        )
    waiting, visited = [judge], set[str]()
    for each in waiting:
        if each == name:
            raise CycleError(
                f"the moderator of `{name}` would wait for itself", hint="name another model"
            )
        if each in models and each not in visited:
            visited.add(each)
            waiting += _needed(models[each])


def _needed(spec: ModelSpec) -> tuple[str, ...]:
    """The models that this one waits for."""
    moderator = spec.moderator
    judge = () if moderator is None or moderator.model is None else (moderator.model,)
    return (*spec.behind, *judge)


def refuse_surroundings(spec: ModelSpec) -> None:
    """Raises: `BuildError` for what a model has in a workflow only: a moderator, a breaker."""
    for key in ("moderator", "breaker"):
        if getattr(spec, key) is not None:
            hint = "declare the model in one"
            raise BuildError(f"a {key} needs a workflow file that it stands in", hint=hint)
