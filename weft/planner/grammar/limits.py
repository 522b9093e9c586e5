"""How strictly a grammar constrains the planning model, and the bounds of its values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Final, Literal

from weft.planner.plan import PlanStep, Value

BOUNDS: Final = ("chars", "items", "depth", "digits", "decimals")
"""The bounds of values that users set."""


@dataclass(frozen=True, slots=True)
class GrammarLimits:
    """The bounds of a grammar. A small model writes on as long as it may, so everything has one.

    chars          characters of a string, unless its schema sets more
    items          items of a list and free keys of an object, unless its schema sets more
    depth          nested lists and objects
    digits         digits of a number before its point
    decimals       digits of a number after its point
    path_steps     steps of a reference's path
    paths          parts of one result with known types; further ones are left to the checker
    results        references of the join
    thought_chars  characters of the one line of thought before a step, 0 for none

    Raises: `ValueError` for a negative bound.
    """

    chars: int = 4_000
    items: int = 1_000
    depth: int = 16
    digits: int = 309
    decimals: int = 40
    path_steps: int = 16
    paths: int = 256
    results: int = 64
    thought_chars: int = 0

    def __post_init__(self) -> None:
        for one in fields(self):
            if getattr(self, one.name) < 0:
                raise ValueError(f"{one.name} cannot be {getattr(self, one.name)}")

    def __str__(self) -> str:
        """The bounds of values, in words."""
        return (
            f"strings of {self.chars:,} characters, lists and objects of {self.items:,} items in"
            f" {self.depth} levels, numbers of {self.digits:,} digits and {self.decimals} decimals"
        )


Constrain = Literal["auto", "line", "plan", "never"]
"""auto    the strictest mode that the model's client offers
line    a grammar for each line, with the exact types of the results so far
plan    one grammar for the whole plan
never   free text; defects are found when it is read
"""


def reached_limits(step: PlanStep, limits: GrammarLimits) -> Iterator[str]:
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
