"""Training texts as token ids: conversations of a file, or generated documents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from weft.core.errors import InputError
from weft.training.corpus import Corpus, TrainingText
from weft.training.diffusion.block.documents import GeneratedDocument, random_document
from weft.training.diffusion.block.forms import DocumentForm
from weft.training.diffusion.block.layout import Ids
from weft.training.prompts import Conversation, Tokenizer, read_prompts


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedText:
    """A text [tokens] whose answer begins with token number `answer`, beyond a text that was cut
    off before. With a `form`, the answer is the form's tokens and what ends it.
    """

    tokens: Ids
    answer: int
    form: DocumentForm | None = None

    @classmethod
    def of(
        cls, text: TrainingText, longest: int, form: DocumentForm | None = None
    ) -> TokenizedText:
        """The first `longest` tokens, without a form that does not fit into them."""
        tokens = np.array(text.tokens[:longest], dtype=np.int64)
        return cls(tokens, text.answer, form if len(tokens) == len(text.tokens) else None)


@dataclass(frozen=True, slots=True)
class TokenizedBatch:
    """Texts of one training step."""

    texts: tuple[TokenizedText, ...]

    @classmethod
    def of(cls, texts: Iterable[TokenizedText]) -> TokenizedBatch:
        return cls(tuple(texts))

    @property
    def learnt_tokens(self) -> int:
        """Number of answer tokens."""
        return sum(max(0, len(page.tokens) - page.answer) for page in self.texts)


class ConversationSource:
    """A `BatchSource` of stored conversations."""

    def __init__(self, corpus: Corpus) -> None:
        self._texts = sorted(corpus.texts, key=lambda text: len(text.tokens))

    def draw(self, rng: np.random.Generator, texts: int, longest: int) -> TokenizedBatch:
        """Texts of similar length, so that padding is small."""
        texts = min(texts, len(self._texts))
        first = int(rng.integers(len(self._texts) - texts + 1))
        return TokenizedBatch.of(
            TokenizedText.of(text, longest) for text in self._texts[first : first + texts]
        )


NARROW: Final = "json"
"""Names the generated texts: forms and plans as JSON documents."""
_HELD_OUT: Final = 10**6
"""Number of the first generated text that no training uses, under any seed."""
_NO_LIMIT: Final = 1 << 30


class ConversationEncoder:
    """Encodes conversations, each up to the `end` of its answer; `mask` occurs in none."""

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

    def of(self, before: Conversation, answer: str) -> TrainingText:
        """The conversation `before` with its answer. Raises: `InputError`, see `Tokenizer`."""
        prompt = self._tokenizer.encode(before)
        return TrainingText((*prompt, *self._tokenizer.plain(answer), self.end), len(prompt))

    def of_document(self, made: GeneratedDocument) -> TrainingText:
        """The request as a user's message, and the document."""
        return self.of((("user", made.request),), made.answer)

    def of_form(self, made: GeneratedDocument) -> tuple[TrainingText, DocumentForm]:
        """The same, with the document in the tokens of a form."""
        prompt = self._tokenizer.encode((("user", made.request),))
        form = DocumentForm.of(made.fields, made.schemas, self._tokenizer.plain)
        return TrainingText((*prompt, *form.tokens, self.end), len(prompt)), form


class DocumentSource:
    """A `BatchSource` of generated documents; with `forms` every second one is a form."""

    def __init__(self, texts: ConversationEncoder, *, forms: bool = True) -> None:
        self._texts = texts
        self._forms = forms

    def draw(self, rng: np.random.Generator, texts: int, longest: int) -> TokenizedBatch:
        """Documents by the state of `rng`."""
        return TokenizedBatch.of(
            self._page(number, random_document(rng), longest) for number in range(texts)
        )

    def held_out(self, count: int) -> list[TokenizedText]:
        """The same documents every time, with new values, not keys."""
        made = (random_document(np.random.default_rng([_HELD_OUT, at])) for at in range(count))
        return [self._page(number, one, _NO_LIMIT) for number, one in enumerate(made)]

    def _page(self, number: int, made: GeneratedDocument, longest: int) -> TokenizedText:
        if self._forms and number % 2:
            text, form = self._texts.of_form(made)
            return TokenizedText.of(text, longest, form)
        return TokenizedText.of(self._texts.of_document(made), longest)


def read_conversations(path: Path, texts: ConversationEncoder) -> Corpus:
    """The conversations of a file, each of which ends with an answer.

    Raises: `InputError` for a file that cannot be read, or a conversation without an answer.
    """
    conversations = []
    for number, conversation in enumerate(read_prompts(path), 1):
        *before, (role, answer) = conversation
        if role != "assistant" or not before:
            raise InputError(
                f"{path}: conversation {number} does not end with an answer",
                hint='the last of its `messages` has the role "assistant"',
            )
        conversations.append(texts.of(tuple(before), answer))
    return Corpus(conversations)
