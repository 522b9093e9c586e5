"""Random questions of a list language. Knows no answers."""

from __future__ import annotations

import numpy as np

from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.language import Argument, Items
from weft.decoding.diffusion.oracle.languages import LANGUAGES
from weft.decoding.diffusion.oracle.question import Question


def asked(operation: str, n: int, random: np.random.Generator) -> Question:
    """A question about `n` items, all choices uniform.

    Raises: `KeyError` for an operation that is none; `ValueError` for items it does not take.
    """
    language = LANGUAGES[operation]
    if not language.shortest <= n <= language.longest:
        raise ValueError(f"{operation} takes {language.shortest} to {language.longest} items")
    chosen = _chosen(language.items, n + ("item" in language.arguments), random)
    arguments = tuple(_argument(what, n, chosen[-1], random) for what in language.arguments)
    return Question(operation, chosen[:n], arguments)


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
