"""That what a document says about thinking can be done. Asks no model."""

from __future__ import annotations

from weft.core.errors import BuildError, UnknownReference
from weft.reasoning.strategies import STRATEGIES
from weft.workflow.clients.behind import thinker
from weft.workflow.document.defects import closest
from weft.workflow.document.leaves import ModelNode
from weft.workflow.document.thinking import ThinkSpec
from weft.workflow.source import Path
from weft.workflow.thinking_options import check_thinking, check_typed, options_of, thinks_already
from weft.workflow.unit import Unit


def check_strategy(unit: Unit, spec: ThinkSpec, path: Path) -> None:
    """Check the strategy at `path` and its settings. Raises: `BuildError`, at its place."""
    if spec.strategy not in STRATEGIES:
        hint = closest(spec.strategy, list(STRATEGIES))
        unknown = UnknownReference(f"there is no strategy `{spec.strategy}`", hint=hint)
        unit.fail(unknown, (*path, "strategy"))
    try:
        check_thinking(spec.strategy, options_of(unit, spec))
    except BuildError as error:
        setting = _named(spec, error)
        place = ("strategy",) if setting is None else ("settings", setting)
        unit.fail(error, (*path, *place))


def check_think(unit: Unit, step: ModelNode, path: Path) -> None:
    """Check how the node at `path` thinks, if it does, and that its model does not.

    Raises: `BuildError`.
    """
    other = thinker(unit, step.model)
    if step.think is not None and other is not None:
        unit.fail(thinks_already(other), (*path, "think"), at_key=True)
    said = step.think or unit.document.models[step.model].think
    if said is not None:
        try:
            check_typed(said.strategy, step.output_schema)
        except BuildError as untyped:
            unit.fail(untyped, (*path, "schema"), at_key=True)
    if step.think is not None:
        check_strategy(unit, step.think, (*path, "think"))


def _named(spec: ThinkSpec, error: BuildError) -> str | None:
    """The setting that an error is about: it quotes its name, or its value."""
    for key, value in spec.settings.items():
        if repr(key) in error.message or (isinstance(value, str) and value in error.message):
            return key
    return None
