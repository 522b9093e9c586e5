"""Upper bounds for what a grammar lets a model write. Knows no schema and no model."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

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
