"""A list language, and a question of it with its prompt: `op [args] SEP x1 .. xn SEP`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from weft.core.errors import ModelRequestError
from weft.decoding.diffusion.oracle import vocabulary as words


@dataclass(frozen=True, slots=True)
class ListQuestion:
    """A question of a list language: `arguments` and `items` are ids of the vocabulary."""

    operation: str
    items: tuple[int, ...]
    arguments: tuple[int, ...] = ()

    @property
    def prompt(self) -> tuple[int, ...]:
        """The question as tokens, up to the start of the answer."""
        operation = words.operation_id(self.operation), *self.arguments
        return (*operation, words.SEP, *self.items, words.SEP)

    @property
    def index(self) -> int:
        """The first argument as a number. Raises: `IndexError` where there is none."""
        return self.arguments[0] - words.FIRST_INDEX

    def __str__(self) -> str:
        return words.spelled(self.prompt)


def read_question(prompt: Sequence[int]) -> ListQuestion:
    """The question of a prompt. Raises: `ModelRequestError` for a prompt of another form."""
    ids = [int(number) for number in prompt]
    operation = ids[0] - words.FIRST_OPERATION if ids else -1
    seps = [at for at, number in enumerate(ids) if number == words.SEP]
    if not 0 <= operation < len(words.OPERATIONS) or len(seps) != 2 or seps[1] != len(ids) - 1:
        raise ModelRequestError(
            "the prompt is no question of a list language",
            hint="op [arguments] <sep> items <sep>, see weft.decoding.diffusion.oracle.vocabulary",
        )
    name = words.OPERATIONS[operation]
    return ListQuestion(name, tuple(ids[seps[0] + 1 : -1]), tuple(ids[1 : seps[0]]))


Argument = Literal["place", "gap", "item"]
"""An index below n, an index up to n, or a name that is not among the items."""
Items = Literal["names", "words"]
AnswerPattern = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ListLanguage:
    """One operation on lists.

    An answer is `alphabet(question)[code]` for each code of one of `patterns(question)`, so that
    questions that differ only in names share a table.

    free       several answers are valid, and their slots depend on each other or are ties
    length     tokens of an answer without its terminator
    count      number of valid answers, without listing them
    valid      the rule, written independently of `patterns`
    arguments  tokens before the items
    shortest, longest   how many items a question may have
    """

    name: str
    free: bool
    length: Callable[[ListQuestion], int]
    count: Callable[[ListQuestion], int]
    alphabet: Callable[[ListQuestion], tuple[int, ...]]
    patterns: Callable[[ListQuestion], Iterable[AnswerPattern]]
    valid: Callable[[ListQuestion, tuple[int, ...]], bool]
    arguments: tuple[Argument, ...] = ()
    items: Items = "names"
    shortest: int = 2
    longest: int = 15
