"""All list languages by name, and what their questions and answers must look like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.core.errors import ModelRequestError
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.language import Argument, Language
from weft.decoding.diffusion.oracle.lists import LISTS
from weft.decoding.diffusion.oracle.puzzles import PUZZLES
from weft.decoding.diffusion.oracle.question import Question

LANGUAGES: Final = {language.name: language for language in (*LISTS, *PUZZLES)}

DETERMINISTIC: Final = tuple(name for name, language in LANGUAGES.items() if not language.free)
"""One answer is valid: the slots of an answer do not depend on each other."""
FREE: Final = tuple(name for name, language in LANGUAGES.items() if language.free)


def language(question: Question) -> Language:
    """Its language. Raises: `ModelRequestError` for arguments or items that it does not take."""
    found = LANGUAGES.get(question.operation)
    if found is None:
        raise ModelRequestError(
            f"there is no list operation {question.operation!r}",
            hint=f"there are: {', '.join(LANGUAGES)}",
        )
    n = len(question.items)
    named = all(words.FIRST_NAME <= item < words.SIZE for item in question.items)
    if not found.shortest <= n <= found.longest or len(set(question.items)) < n or not named:
        raise ModelRequestError(
            f"{found.name} of {n} items: {words.spelled(question.items)}",
            hint=f"it takes {found.shortest} to {found.longest} {found.items}, all different",
        )
    if len(question.arguments) != len(found.arguments) or not all(
        _fits(what, token, question)
        for what, token in zip(found.arguments, question.arguments, strict=True)
    ):
        raise ModelRequestError(
            f"{found.name} does not take {words.spelled(question.arguments) or 'nothing'}",
            hint=f"it takes: {', '.join(found.arguments) or 'no arguments'}",
        )
    if not found.count(question):
        raise ModelRequestError(
            f"{question} has no valid answer", hint="a sentence takes two nouns and one verb"
        )
    return found


def valid(question: Question, answer: Sequence[int]) -> bool:
    """Whether it is right. `answer` without its terminator. Raises: as `language`."""
    return language(question).valid(question, tuple(int(token) for token in answer))


def _fits(what: Argument, token: int, question: Question) -> bool:
    if what == "item":
        named = words.FIRST_NAME <= token < words.FIRST_ADJECTIVE
        return named and token not in question.items
    places = len(question.items) + (what == "gap")
    return 0 <= token - words.FIRST_INDEX < places
