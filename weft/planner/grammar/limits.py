"""Upper bounds for what a grammar lets a model write. Knows no schema and no model."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class GrammarLimits:
    """A small model writes on for as long as it may, so that everything has an end.

    `chars` of a string, where its schema asks for no more; `items` of a list, where its schema asks
    for no more; `depth` of lists and objects within one another; `digits` of a number before its
    point. A reference goes `path_steps` deep, into at most `paths` places of one result.
    `thought_chars` of the one line of thought before a step, 0 for none; `results` of the join.

    Raises: `ValueError` for a negative bound.
    """

    chars: int = 200
    items: int = 8
    depth: int = 5
    digits: int = 12
    path_steps: int = 3
    paths: int = 48
    thought_chars: int = 0
    results: int = 8

    def __post_init__(self) -> None:
        for one in fields(self):
            if getattr(self, one.name) < 0:
                raise ValueError(f"{one.name} cannot be {getattr(self, one.name)}")
