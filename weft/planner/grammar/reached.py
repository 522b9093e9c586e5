"""Values of a step that are as long as a grammar lets them be: more may have been meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weft.planner.grammar.limits import GrammarLimits
from weft.planner.plan import Step, Value


def reached(step: Step, limits: GrammarLimits) -> Iterator[str]:
    """The bounds that arguments of `step` have reached, in words."""
    for name, value in step.arguments.items():
        for what, bound in dict.fromkeys(_reached(value, limits)):
            yield (
                f"the argument {name} of step {step.number} has a {what}, which the grammar allows"
                f" at most: set grammar.{bound}"
            )


def _reached(value: Value, limits: GrammarLimits) -> Iterator[tuple[str, str]]:
    match value:
        case str() if len(value) == limits.chars:
            yield f"string of {limits.chars:,} characters", "chars"
        case int() if not isinstance(value, bool) and len(str(abs(value))) == limits.digits:
            yield f"number of {limits.digits:,} digits", "digits"
        case Mapping() | list() | tuple():
            if len(value) == limits.items:
                yield f"list or object of {limits.items:,} items", "items"
            for inner in value.values() if isinstance(value, Mapping) else value:
                yield from _reached(inner, limits)
        case _:
            pass
