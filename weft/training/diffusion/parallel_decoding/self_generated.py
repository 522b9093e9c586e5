"""Texts that a diffusion model writes itself, one token a pass, to train it or its filter on.

Each pass writes the likeliest token of the surest slot. Prompts are list questions, generated
requests for JSON, or those of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.core.errors import CapabilityError, InputError
from weft.decoding.diffusion.adapter import ModelAdapter, ModelTraits
from weft.decoding.diffusion.caches.exact import exact_cache
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import GREEDY, DenoisingRow, denoise_all
from weft.decoding.diffusion.models.loading import load
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.languages import LANGUAGES
from weft.decoding.diffusion.policies.fixed_pace import EveryStep, FixedPacePolicy
from weft.decoding.diffusion.ports import CommitPolicy, DecoderConfig
from weft.decoding.diffusion.schedules import FixedBlocks as Blocks
from weft.decoding.diffusion.schedules import fill_of
from weft.decoding.diffusion.stops import FirstTerminator
from weft.decoding.network.options import NetworkOptions
from weft.decoding.sampling import CounterRng
from weft.training.diffusion.block.documents import random_document
from weft.training.diffusion.list_model.questions import QuestionMix, draw_question
from weft.training.diffusion.spec import DiffusionTrainingJob
from weft.training.prompts import Conversation, Tokenizer, read_prompts

_AT_ONCE: Final = 48
"""Rows of a pass."""

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class SelfGeneratedText:
    """A prompt and the model's answer, filled up with EOS: [prompt], [slots]."""

    prompt: tuple[int, ...]
    answer: Ids

    @property
    def ids(self) -> Ids:
        """Prompt and answer, [prompt + slots]."""
        return np.array([*self.prompt, *self.answer], dtype=np.int64)


def load_teacher(job: DiffusionTrainingJob) -> NetworkAdapter:
    """The job's model on the device of the training.

    Raises: `InputError` for an unreadable folder, or a model without a mask.
    """
    assert job.model is not None
    options = NetworkOptions(dtype="float32", threads=job.threads, device=job.device)
    try:
        loaded = load(job.model, options, find=job.find)
    except CapabilityError as error:
        message = f"{job.model} is no diffusion model to learn from: {error.message}"
        raise InputError(message, hint=error.hint) from error
    if loaded.traits.mask_id is None or not loaded.traits.end_ids:
        raise InputError(
            f"{job.model} has no mask, or no token that ends a text",
            hint="such a model writes over noise, which neither of these trainings does",
        )
    return NetworkAdapter(loaded.network, loaded.traits)


def write_texts(
    adapter: ModelAdapter,
    prompts: Sequence[tuple[int, ...]],
    slots: int,
    on_text: Callable[[int], None],
    stop: Callable[[], bool],
) -> list[SelfGeneratedText] | None:
    """An answer to each prompt; None when `stop` returned true. `on_text` gets their number."""
    texts: list[SelfGeneratedText] = []
    for first in range(0, len(prompts), _AT_ONCE):
        some = prompts[first : first + _AT_ONCE]
        rows = denoising_rows(
            adapter, some, slots, [FixedPacePolicy(EveryStep(1), "confidence")] * len(some)
        )
        denoise_all(rows, adapter)
        for prompt, row in zip(some, rows, strict=True):
            answer = np.full(slots, min(adapter.traits.end_ids), dtype=np.int64)
            answer[: len(row.kept)] = row.kept
            texts.append(SelfGeneratedText(prompt, answer))
        on_text(len(texts))
        if stop():
            return None
    return texts


def denoising_rows(
    adapter: ModelAdapter,
    prompts: Sequence[tuple[int, ...]],
    slots: int,
    policies: Sequence[CommitPolicy],
) -> list[DenoisingRow]:
    """A row for each prompt with its policy; without blocks, the window is the answer."""
    rows = []
    for number, (prompt, policy) in enumerate(zip(prompts, policies, strict=True)):
        adapter.forget(number)
        canvas = Canvas(prompt, slots, fill_of(adapter.traits), row=number)
        config = policy_config(policy, adapter.traits)
        rows.append(DenoisingRow(canvas, config, adapter.traits, CounterRng(0), GREEDY))
    return rows


def policy_config(policy: CommitPolicy, traits: ModelTraits) -> DecoderConfig:
    """A decoder of `policy`, without other choices."""
    return DecoderConfig(policy, Blocks(), exact_cache(traits), FirstTerminator())


Prompt = tuple[int, ...]
_HELD_OUT: Final = 10**6
"""Number of the first generated request that no training uses, under any seed."""
_HELD_OUT_EVERY: Final = 10


class PromptSource(Protocol):
    """A source of prompts."""

    @property
    def slots(self) -> int:
        """The default number of slots of an answer."""

    def drawn(self, count: int, slots: int, rng: np.random.Generator) -> list[Prompt]:
        """`count` prompts, or all, if fewer, whose answers fit `slots` slots."""

    def held_out(self, count: int) -> list[Prompt]:
        """At most `count` prompts that `drawn` never returns."""


def prompts_of(job: DiffusionTrainingJob, traits: ModelTraits) -> PromptSource:
    """The prompts of the job's `data`, else those that suit its model.

    Raises: `InputError` for an unreadable file, or a model without a tokenizer.
    """
    if job.data is None and (traits.vocabulary, traits.mask_id) == (words.SIZE, words.MASK):
        return ListPromptSource()
    assert traits.folder is not None
    tokenizer = Tokenizer(traits.folder)
    if job.data is None:
        return GeneratedPromptSource(tokenizer.encode)
    conversations = [_unanswered(each) for each in read_prompts(Path(job.data))]
    return FilePromptSource([tokenizer.encode(conversation) for conversation in conversations])


@dataclass(frozen=True, slots=True)
class ListPromptSource:
    """A `PromptSource` of list questions of all operations."""

    slots: int = 16

    def drawn(self, count: int, slots: int, rng: np.random.Generator) -> list[Prompt]:
        return self._questions(count, slots, rng, unseen=False)

    def held_out(self, count: int) -> list[Prompt]:
        return self._questions(count, self.slots, np.random.default_rng(_HELD_OUT), unseen=True)

    def _questions(
        self, count: int, slots: int, rng: np.random.Generator, *, unseen: bool
    ) -> list[Prompt]:
        mix = QuestionMix()
        forms = [
            (name, n, often * weight)
            for name, often in mix.operations.items()
            for n, weight in mix.sizes.items()
            if LANGUAGES[name].shortest <= n <= LANGUAGES[name].longest
        ]
        weights = np.array([weight for *_, weight in forms])
        prompts: list[Prompt] = []
        while len(prompts) < count:
            name, n, _ = forms[rng.choice(len(forms), p=weights / weights.sum())]
            question = draw_question(name, n, rng, unseen=unseen)
            if LANGUAGES[name].length(question) <= slots:
                prompts.append(question.prompt)
        return prompts


@dataclass(frozen=True, slots=True)
class GeneratedPromptSource:
    """A `PromptSource` of generated requests for short JSON documents."""

    encode: Callable[[Conversation], Prompt]
    slots: int = 64

    def drawn(self, count: int, slots: int, rng: np.random.Generator) -> list[Prompt]:  # noqa: ARG002
        return [self._request(rng) for _ in range(count)]

    def held_out(self, count: int) -> list[Prompt]:
        return [self._request(np.random.default_rng([_HELD_OUT, at])) for at in range(count)]

    def _request(self, rng: np.random.Generator) -> Prompt:
        return self.encode((("user", random_document(rng).request),))


@dataclass(frozen=True, slots=True)
class FilePromptSource:
    """A `PromptSource` of a file, of which every tenth prompt is held out."""

    prompts: Sequence[Prompt]
    slots: int = 64

    def drawn(self, count: int, slots: int, rng: np.random.Generator) -> list[Prompt]:  # noqa: ARG002
        learnt = [prompt for at, prompt in enumerate(self.prompts, 1) if at % _HELD_OUT_EVERY]
        chosen = rng.permutation(len(learnt))[:count]
        return [learnt[at] for at in sorted(chosen)]

    def held_out(self, count: int) -> list[Prompt]:
        return list(self.prompts[_HELD_OUT_EVERY - 1 :: _HELD_OUT_EVERY][:count])


def _unanswered(conversation: Conversation) -> Conversation:
    """The conversation without its last answer, which the model writes itself."""
    before = conversation[:-1] if conversation[-1][0] == "assistant" else conversation
    if not before:
        raise InputError("a conversation has an answer and no question")
    return before
