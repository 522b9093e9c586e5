"""Where texts to learn from come from: conversations in a file, or narrow ones that are made.

Knows prompts and answers as token ids.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from weft.core.errors import InputError
from weft.decoding.diffusion.train.block.documents import Document, document
from weft.decoding.diffusion.train.block.forms import Form
from weft.decoding.diffusion.train.block.pages import Page, Pages
from weft.decoding.speculative.train.corpus import Corpus, Text
from weft.decoding.speculative.train.prompts import Conversation, Tokenizer, read_prompts

NARROW: Final = "json"
"""Stands for the texts that are made: forms and plans as JSON documents."""
_HELD_OUT: Final = 10**6
"""Number of the first made text that nobody learns from, under every seed."""
_NO_LIMIT: Final = 1 << 30


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

    def of_form(self, made: Document) -> tuple[Text, Form]:
        """The same, the document in the tokens that fill a form."""
        prompt = self._tokenizer.encode((("user", made.request),))
        form = Form.of(made.fields, made.schemas, self._tokenizer.plain)
        return Text((*prompt, *form.tokens, self.end), len(prompt)), form


class Made:
    """Documents without end, with `forms` each second one as a form. Implements `Source`."""

    def __init__(self, texts: Texts, *, forms: bool = True) -> None:
        self._texts = texts
        self._forms = forms

    def draw(self, chance: np.random.Generator, texts: int, longest: int) -> Pages:
        """Other ones for every chance."""
        return Pages.of(self._page(number, document(chance), longest) for number in range(texts))

    def held_out(self, count: int) -> list[Page]:
        """The same ones always. Their values, not their keys, are new."""
        made = (document(np.random.default_rng([_HELD_OUT, at])) for at in range(count))
        return [self._page(number, one, _NO_LIMIT) for number, one in enumerate(made)]

    def _page(self, number: int, made: Document, longest: int) -> Page:
        if self._forms and number % 2:
            text, form = self._texts.of_form(made)
            return Page.of(text, longest, form)
        return Page.of(self._texts.of_document(made), longest)


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
