"""What a list language is: which questions it has and the table of valid answers of each.

Knows no single operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from weft.decoding.diffusion.oracle.question import Question

Argument = Literal["place", "gap", "item"]
"""An index below n, an index up to n, or a name that is not among the items."""
Items = Literal["names", "words"]
Pattern = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Language:
    """One operation on lists.

    Answers are patterns: an answer is `alphabet(question)[code]` for each code of one of
    `patterns(question)`. So questions that differ in names only share a table.

    free       several answers are valid, and their slots depend on each other or are ties
    length     tokens of an answer without its terminator
    count      how many valid answers there are, without counting them one by one
    valid      the rule itself, written independently of `patterns`
    arguments  what stands before the items
    shortest, longest   how many items a question may have
    """

    name: str
    free: bool
    length: Callable[[Question], int]
    count: Callable[[Question], int]
    alphabet: Callable[[Question], tuple[int, ...]]
    patterns: Callable[[Question], Iterable[Pattern]]
    valid: Callable[[Question, tuple[int, ...]], bool]
    arguments: tuple[Argument, ...] = ()
    items: Items = "names"
    shortest: int = 2
    longest: int = 15
