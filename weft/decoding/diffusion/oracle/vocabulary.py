"""The tokens of the list languages: one id for each operation, index, bracket, name and word.

Shared by the oracle and by the trained list model.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final


def _all(text: str) -> tuple[str, ...]:
    return tuple(text.split())


OPERATIONS: Final = _all(
    "copy reverse sort replace_index remove_index insert_index shuffle replace_random "
    "insert_random remove_random choose_any pair_match latin_row latin_square parity brackets "
    "words_to_sentence"
)
"""In the order of their ids."""

INDICES: Final = 16
"""Index tokens `0` to `15`; `0` and `1` are the bits of `parity` too."""

NAMES: Final = _all(
    "Adam Alice Amy Anna Arthur Ben Beth Brian Bruce Carl Carol Chloe Clara Claude Colin Cora "
    "Dana Daniel Dave Diana Donna Doris Edgar Edith Ellen Elsa Emma Eric Ethan Eva Fiona Frank "
    "Fred Gary George Gina Grace Greta Gus Hana Harry Hazel Helen Henry Hugo Ian Ida Ingrid Iris "
    "Ivan Jack Jane Jason Jean Joan Julia Karen Karl Kate Kevin Kim Kurt Lara Laura Leo Lily Lisa "
    "Luke Maria Mark Mary Max Mia Mike Nancy Neil Nina Noah Nora Olga Oliver Oscar Pablo Pam Paul "
    "Peter Quinn Rachel Ralph Rita Rosa Ruth Sally Sam Sara Simon Tina Tom Victor Wendy"
)
"""One hundred, in alphabetical order, so that sorting ids sorts names."""

ADJECTIVES: Final = _all("big black blue brave cold kind new old quiet small tall young")
NOUNS: Final = _all("bird boat bread child dog garden girl horse house letter river teacher")
VERBS: Final = _all("carries draws finds follows hears helps keeps likes loves paints sees wants")
ADVERBS: Final = _all("again alone always early gladly here indoors now often slowly today well")

PAD, EOS, SEP, MASK, OPEN, CLOSE, EVEN, ODD = range(8)

FIRST_OPERATION: Final = 8
FIRST_INDEX: Final = FIRST_OPERATION + len(OPERATIONS)
FIRST_NAME: Final = FIRST_INDEX + INDICES
FIRST_ADJECTIVE: Final = FIRST_NAME + len(NAMES)
FIRST_NOUN: Final = FIRST_ADJECTIVE + len(ADJECTIVES)
FIRST_VERB: Final = FIRST_NOUN + len(NOUNS)
FIRST_ADVERB: Final = FIRST_VERB + len(VERBS)

TOKENS: Final = (
    *("<pad>", "<eos>", "<sep>", "<mask>", "[", "]", "even", "odd"),
    *OPERATIONS,
    *(str(index) for index in range(INDICES)),
    *NAMES,
    *ADJECTIVES,
    *NOUNS,
    *VERBS,
    *ADVERBS,
)
"""The spelling of every id; no two are equal."""

SIZE: Final = len(TOKENS)

_IDS: Final = {token: number for number, token in enumerate(TOKENS)}


def operation_id(name: str) -> int:
    """The id of an operation of `OPERATIONS`."""
    return FIRST_OPERATION + OPERATIONS.index(name)


def index_id(index: int) -> int:
    """The id of the index token `index`, counted from 0, below `INDICES`."""
    return FIRST_INDEX + range(INDICES)[index]


def spelled(ids: Iterable[int]) -> str:
    """Tokens with spaces between them, for people."""
    return " ".join(TOKENS[number] for number in ids)


def ids_of(text: str) -> tuple[int, ...]:
    """The inverse of `spelled`. Raises: `KeyError` for what is no token."""
    return tuple(_IDS[token] for token in text.split())
