"""Text as token ids of a wanted length, so that prompts have exact sizes. Knows no programs."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

Encode = Callable[[str], Sequence[int]]

_SUBJECTS = (
    "the agent",
    "a user",
    "the tool",
    "our report",
    "the server",
    "a customer",
    "the plan",
)
_VERBS = ("reads", "changes", "compares", "finds", "explains", "measures", "returns", "repairs")
_OBJECTS = ("the file", "an order", "two prices", "the last answer", "a table", "the log", "a city")
_ENDS = ("before noon", "in the second step", "without an error", "for the team", "once more")


class Prose:
    """Endless plain sentences through `encode`, cut where the wanted number of tokens is reached.

    The same `source` gives the same ids.
    """

    def __init__(self, encode: Encode) -> None:
        self._encode = encode

    def write(self, source: random.Random, tokens: int) -> tuple[int, ...]:
        """`tokens` ids."""
        ids: list[int] = []
        while len(ids) < tokens:
            words = (source.choice(part) for part in (_SUBJECTS, _VERBS, _OBJECTS, _ENDS))
            ids += self._encode(f"{' '.join(words)} {source.randrange(10_000)}. ".capitalize())
        return tuple(ids[:tokens])


def prose_of(model: Path) -> Prose:
    """Sentences in the tokens of the model in the folder `model`."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    return Prose(lambda text: tokenizer.encode(text, add_special_tokens=False).ids)
