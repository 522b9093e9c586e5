"""What a document says about thinking, as the options of a strategy; and whether they are right.

Asks no model.
"""

from __future__ import annotations

from dataclasses import replace

from weft.core.errors import BuildError
from weft.core.fakes import FakeModel
from weft.reasoning.options import ThinkOptions
from weft.reasoning.strategies import make_strategy
from weft.workflow.document.thinking import ThinkSpec

_ELSEWHERE = frozenset(("strategy", "documents"))


def options_of(spec: ThinkSpec, *, seed: int = 0, tokens_left: int | None = None) -> ThinkOptions:
    """The options. `seed` stands in where the document gives none; no more than `tokens_left`."""
    said = {
        name: value
        for name in type(spec).model_fields
        if name not in _ELSEWHERE and (value := getattr(spec, name)) is not None
    }
    options = ThinkOptions(**{"seed": seed, **said})
    if tokens_left is None:
        return options
    return replace(options, budget=max(1, min(options.cap, tokens_left)))


def check_thinking(strategy: str, options: ThinkOptions) -> None:
    """Raises: `BuildError` for a strategy that is not there, or settings that it does not have."""
    try:
        make_strategy(strategy, FakeModel([""]), options)
    except ValueError as error:
        raise BuildError(f"{strategy}: {error}") from error
