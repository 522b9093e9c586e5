"""Where texts to learn from come from: conversations in a file, or narrow ones that are made.

Knows prompts and answers as token ids.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from weft.core.errors import InputError
from weft.decoding.diffusion.train.block.documents import Document, document
from weft.decoding.speculative.train.corpus import Batch, Corpus, Text, batch_of
from weft.decoding.speculative.train.prompts import Conversation, Tokenizer, read_prompts

NARROW: Final = "json"
"""Stands for the texts that are made: forms and plans as JSON documents."""
_HELD_OUT: Final = 10**6
"""Number of the first made text that nobody learns from, under every seed."""


class Texts:
    """Conversations as token ids, each up to the `end` of its answer; `mask` stands in none."""

    def __init__(self, model: Path) -> None:
        """Raises: `InputError` for a folder without a tokenizer, or one without such tokens."""
        self._tokenizer = Tokenizer(model)
        mask, end = self._tokenizer.reserved, self._tokenizer.end
        if mask is None or end is None:
            raise InputError(
                f"{model} has no reserved token to stand for the mask, or none that ends a text",
                hint="add a special token to its tokenizer, and a row to its embeddings",
            )
        self.mask, self.end = mask, end

    def of(self, before: Conversation, answer: str) -> Text:
        """The answer to what was said before. Raises: `InputError`, see `Tokenizer`."""
        prompt = self._tokenizer.encode(before)
        return Text((*prompt, *self._tokenizer.plain(answer), self.end), len(prompt))

    def of_document(self, made: Document) -> Text:
        """The request as a user's turn, and the document."""
        return self.of((("user", made.request),), made.answer)


class Made:
    """Documents without end. Implements `Source`."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    def draw(self, chance: np.random.Generator, texts: int, longest: int) -> Batch:
        """Other ones for every chance."""
        return batch_of([self._texts.of_document(document(chance)) for _ in range(texts)], longest)

    def held_out(self, count: int) -> Corpus:
        """The same ones always. Their values, not their keys, are new."""
        drawn = [document(np.random.default_rng([_HELD_OUT, at])) for at in range(count)]
        return Corpus([self._texts.of_document(made) for made in drawn])


def read(path: Path, texts: Texts) -> Corpus:
    """The conversations of a file, each of which ends with an answer.

    Raises: `InputError` for a file that cannot be read, or a conversation without an answer.
    """
    found = []
    for number, conversation in enumerate(read_prompts(path), 1):
        *before, (role, answer) = conversation
        if role != "assistant" or not before:
            raise InputError(
                f"{path}: conversation {number} does not end with an answer",
                hint='the last of its `messages` has the role "assistant"',
            )
        found.append(texts.of(tuple(before), answer))
    return Corpus(found)
