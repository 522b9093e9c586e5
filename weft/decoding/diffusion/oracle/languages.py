"""All list languages by name: the form of their questions, and their valid answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.core.errors import CapabilityError, ModelRequestError
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.language import Argument, Items, ListLanguage, ListQuestion
from weft.decoding.diffusion.oracle.lists import LISTS
from weft.decoding.diffusion.oracle.puzzles import PUZZLES

LANGUAGES: Final = {language_of.name: language_of for language_of in (*LISTS, *PUZZLES)}

DETERMINISTIC: Final = tuple(
    name for name, language_of in LANGUAGES.items() if not language_of.free
)
"""Languages with one valid answer: the slots of an answer do not depend on each other."""
FREE: Final = tuple(name for name, language_of in LANGUAGES.items() if language_of.free)


def language_of(question: ListQuestion) -> ListLanguage:
    """The language of `question`. Raises: `ModelRequestError` for unfit arguments or items."""
    language = LANGUAGES.get(question.operation)
    if language is None:
        raise ModelRequestError(
            f"there is no list operation {question.operation!r}",
            hint=f"there are: {', '.join(LANGUAGES)}",
        )
    n = len(question.items)
    named = all(words.FIRST_NAME <= item < words.SIZE for item in question.items)
    if not language.shortest <= n <= language.longest or len(set(question.items)) < n or not named:
        raise ModelRequestError(
            f"{language.name} of {n} items: {words.spelled(question.items)}",
            hint=f"it takes {language.shortest} to {language.longest} {language.items},"
            " all different",
        )
    if len(question.arguments) != len(language.arguments) or not all(
        _fits(what, token, question)
        for what, token in zip(language.arguments, question.arguments, strict=True)
    ):
        raise ModelRequestError(
            f"{language.name} does not take {words.spelled(question.arguments) or 'nothing'}",
            hint=f"it takes: {', '.join(language.arguments) or 'no arguments'}",
        )
    if not language.count(question):
        raise ModelRequestError(
            f"{question} has no valid answer", hint="a sentence takes two nouns and one verb"
        )
    return language


def valid(question: ListQuestion, answer: Sequence[int]) -> bool:
    """Whether `answer`, without its terminator, is valid. Raises: as `language_of`."""
    return language_of(question).valid(question, tuple(int(token) for token in answer))


def _fits(what: Argument, token: int, question: ListQuestion) -> bool:
    if what == "item":
        named = words.FIRST_NAME <= token < words.FIRST_ADJECTIVE
        return named and token not in question.items
    places = len(question.items) + (what == "gap")
    return 0 <= token - words.FIRST_INDEX < places


MOST_ANSWERS: Final = 50_000
"""The most that are listed one by one; 8! = 40,320 are."""


@lru_cache(maxsize=128)
def answer_table(question: ListQuestion) -> NDArray[np.int16]:
    """[answers, tokens], read-only; distinct and equally likely.

    Raises: `CapabilityError` for more than `MOST_ANSWERS`; as `language_of`.
    """
    language = language_of(question)
    count = language.count(question)
    if count > MOST_ANSWERS:
        raise CapabilityError(
            f"{language.name} of {len(question.items)} items has {count:,} valid answers",
            hint=f"the oracle lists up to {MOST_ANSWERS:,}: take fewer items",
        )
    length = language.length(question)
    codes = np.fromiter(chain.from_iterable(language.patterns(question)), np.int16, count * length)
    table = np.array(language.alphabet(question), dtype=np.int16)[codes].reshape(count, length)
    table.setflags(write=False)
    return table


def random_answer(question: ListQuestion, random: np.random.Generator) -> tuple[int, ...]:
    """One valid answer, uniformly. Raises: as `answer_table`."""
    table = answer_table(question)
    return tuple(int(token) for token in table[random.integers(len(table))])


def random_question(operation: str, n: int, random: np.random.Generator) -> ListQuestion:
    """A question about `n` items, all choices uniform.

    Raises: `KeyError` for an unknown operation; `ValueError` for items it does not take.
    """
    language = LANGUAGES[operation]
    if not language.shortest <= n <= language.longest:
        raise ValueError(f"{operation} takes {language.shortest} to {language.longest} items")
    chosen = _chosen(language.items, n + ("item" in language.arguments), random)
    arguments = tuple(_argument(what, n, chosen[-1], random) for what in language.arguments)
    return ListQuestion(operation, chosen[:n], arguments)


def _chosen(items: Items, count: int, random: np.random.Generator) -> tuple[int, ...]:
    """Different ids in random order."""
    if items == "names":
        ids = random.choice(len(words.NAMES), count, replace=False) + words.FIRST_NAME
        return tuple(int(name) for name in ids)
    nouns = random.choice(len(words.NOUNS), 2, replace=False) + words.FIRST_NOUN
    verb = random.integers(len(words.VERBS)) + words.FIRST_VERB
    other = [
        *range(words.FIRST_ADJECTIVE, words.FIRST_NOUN),
        *range(words.FIRST_ADVERB, words.SIZE),
    ]
    rest = random.choice(other, count - 3, replace=False)
    return tuple(int(word) for word in random.permutation([*nouns, verb, *rest]))


def _argument(what: Argument, n: int, new: int, random: np.random.Generator) -> int:
    if what == "item":
        return new
    return words.index_id(int(random.integers(n + (what == "gap"))))
