"""What a document says about thinking, as the options of a strategy; and whether they are right.

Asks no model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from weft.core.errors import BuildError, CycleError
from weft.core.values import JsonSchema
from weft.reasoning.options import ThinkOptions
from weft.reasoning.strategies import STRATEGIES, check_options
from weft.workflow.document.thinking import ThinkSpec
from weft.workflow.strategy_settings import settings_in
from weft.workflow.unit import Unit

_ELSEWHERE = frozenset(("strategy", "documents"))


def options_of(
    unit: Unit, spec: ThinkSpec, *, seed: int = 0, tokens_left: int | None = None
) -> ThinkOptions:
    """What `unit` says. `seed` stands in where it gives none; no more than `tokens_left`.

    Raises: `BuildError` when a function or a file that the settings name is not there.
    """
    said: dict[str, Any] = {
        name: value
        for name in type(spec).model_fields
        if name not in _ELSEWHERE and (value := getattr(spec, name)) is not None
    }
    said["settings"] = settings_in(unit, spec.strategy, spec.settings)
    options = ThinkOptions(**{"seed": seed, **said})
    if tokens_left is None:
        return options
    return replace(options, budget=max(1, min(options.cap, tokens_left)))


def check_thinking(strategy: str, options: ThinkOptions) -> None:
    """Raises: `BuildError` for a strategy that is not there, or settings that it does not have."""
    try:
        check_options(strategy, options)
    except ValueError as error:
        raise BuildError(f"{strategy}: {error}") from error


def thinks_already(model: str) -> CycleError:
    """What is wrong with `model` as the one that a model thinks with."""
    hint = "name the model that it thinks with"
    return CycleError(f"the model `{model}` thinks already", hint=hint)


def check_typed(strategy: str, schema: JsonSchema | None) -> None:
    """Raises: `BuildError` when answers of `strategy` fit no schema, and there is one."""
    entry = STRATEGIES.get(strategy)
    if schema is not None and entry is not None and not entry.typed:
        hint = "leave the schema out, or have another node make it of the answer"
        raise BuildError(f"answers of {strategy} have a form of their own: no schema", hint=hint)
