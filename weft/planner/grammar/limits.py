"""How firmly a planning model is held to a grammar, and the bounds of what the grammar allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Final, Literal

from weft.planner.plan import PlanStep, Value

BOUNDS: Final = ("chars", "items", "depth", "digits", "decimals")
"""The bounds of values, which users set."""


@dataclass(frozen=True, slots=True)
class GrammarLimits:
    """A small model writes on for as long as it may, so that everything has an end.

    chars          characters of a string, where its schema asks for no more
    items          items of a list and free keys of an object, where its schema asks for no more
    depth          lists and objects within one another
    digits         digits of a number before its point
    decimals       digits of a number behind its point
    path_steps     steps of a reference
    paths          places of one result with known types; where it has more, references into it
                   are left to the checker
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
"""auto    the firmest way that the model's client offers
line    each line by a grammar of its own, with the exact types of what may be referred to
plan    one grammar for the whole plan
never   free text; what is wrong is found when it is read
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
