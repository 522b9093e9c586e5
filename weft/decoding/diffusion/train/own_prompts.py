"""What a diffusion model is asked to make its own texts: list questions, or requests in words.

Knows prompts as token ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np

from weft.core.errors import InputError
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.languages import LANGUAGES
from weft.decoding.diffusion.train.block.documents import document
from weft.decoding.diffusion.train.lists.drawing import drawn_question
from weft.decoding.diffusion.train.lists.source import Mix
from weft.decoding.diffusion.train.order import Order
from weft.decoding.speculative.train.prompts import Conversation, Tokenizer, read_prompts

Prompt = tuple[int, ...]
_HELD_OUT: Final = 10**6
"""Number of the first made request that nobody learns from, under every seed."""
_HELD_OUT_EVERY: Final = 10


class Prompts(Protocol):
    """Where prompts come from."""

    @property
    def slots(self) -> int:
        """That an answer has, unless told otherwise."""

    def drawn(self, count: int, slots: int, chance: np.random.Generator) -> list[Prompt]:
        """`count` of them, or all where there are fewer, whose answers fit into so many slots."""

    def held_out(self, count: int) -> list[Prompt]:
        """At most `count` that are never drawn."""


def prompts_of(order: Order, traits: Traits) -> Prompts:
    """Those of the order's `data`; without, what suits its model.

    Raises: `InputError` for a file that cannot be read, or a model without a tokenizer.
    """
    if order.data is None and (traits.vocabulary, traits.mask_id) == (words.SIZE, words.MASK):
        return ListPrompts()
    assert traits.folder is not None
    tokenizer = Tokenizer(traits.folder)
    if order.data is None:
        return MadePrompts(tokenizer.encode)
    asked = [_unanswered(each) for each in read_prompts(Path(order.data))]
    return GivenPrompts([tokenizer.encode(conversation) for conversation in asked])


@dataclass(frozen=True, slots=True)
class ListPrompts:
    """Questions about lists, of all operations. Implements `Prompts`."""

    slots: int = 16

    def drawn(self, count: int, slots: int, chance: np.random.Generator) -> list[Prompt]:
        """See `Prompts`."""
        return self._questions(count, slots, chance, unseen=False)

    def held_out(self, count: int) -> list[Prompt]:
        """See `Prompts`."""
        return self._questions(count, self.slots, np.random.default_rng(_HELD_OUT), unseen=True)

    def _questions(
        self, count: int, slots: int, chance: np.random.Generator, *, unseen: bool
    ) -> list[Prompt]:
        mix = Mix()
        forms = [
            (name, n, often * weight)
            for name, often in mix.operations.items()
            for n, weight in mix.sizes.items()
            if LANGUAGES[name].shortest <= n <= LANGUAGES[name].longest
        ]
        weights = np.array([weight for *_, weight in forms])
        found: list[Prompt] = []
        while len(found) < count:
            name, n, _ = forms[chance.choice(len(forms), p=weights / weights.sum())]
            question = drawn_question(name, n, chance, unseen=unseen)
            if LANGUAGES[name].length(question) <= slots:
                found.append(question.prompt)
        return found


@dataclass(frozen=True, slots=True)
class MadePrompts:
    """Requests for short JSON documents, without end. Implements `Prompts`."""

    encode: Callable[[Conversation], Prompt]
    slots: int = 64

    def drawn(self, count: int, slots: int, chance: np.random.Generator) -> list[Prompt]:  # noqa: ARG002
        """See `Prompts`."""
        return [self._request(chance) for _ in range(count)]

    def held_out(self, count: int) -> list[Prompt]:
        """See `Prompts`."""
        return [self._request(np.random.default_rng([_HELD_OUT, at])) for at in range(count)]

    def _request(self, chance: np.random.Generator) -> Prompt:
        return self.encode((("user", document(chance).request),))


@dataclass(frozen=True, slots=True)
class GivenPrompts:
    """Those of a file, of which every tenth is held out. Implements `Prompts`."""

    prompts: Sequence[Prompt]
    slots: int = 64

    def drawn(self, count: int, slots: int, chance: np.random.Generator) -> list[Prompt]:  # noqa: ARG002
        """See `Prompts`."""
        learnt = [prompt for at, prompt in enumerate(self.prompts, 1) if at % _HELD_OUT_EVERY]
        chosen = chance.permutation(len(learnt))[:count]
        return [learnt[at] for at in sorted(chosen)]

    def held_out(self, count: int) -> list[Prompt]:
        """See `Prompts`."""
        return list(self.prompts[_HELD_OUT_EVERY - 1 :: _HELD_OUT_EVERY][:count])


def _unanswered(conversation: Conversation) -> Conversation:
    """Up to the last answer: the model writes its own."""
    before = conversation[:-1] if conversation[-1][0] == "assistant" else conversation
    if not before:
        raise InputError("a conversation has an answer and no question")
    return before
