"""What a list model itself writes for questions that may be learnt from, one token a pass.

The surest slot first, the likeliest token: the teacher of what makes decoding faster. Knows no
training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.core.errors import CapabilityError, InputError
from weft.decoding.diffusion.adapter import ModelAdapter, Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import Denoising
from weft.decoding.diffusion.loop import GREEDY, denoised
from weft.decoding.diffusion.models.loading import load
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.languages import LANGUAGES
from weft.decoding.diffusion.plugs import Plugs
from weft.decoding.diffusion.policies.fixed import Fixed
from weft.decoding.diffusion.policies.pace import Every
from weft.decoding.diffusion.policy import CommitPolicy
from weft.decoding.diffusion.presets.usual import exact_cache
from weft.decoding.diffusion.schedules.fixed import Fixed as Blocks
from weft.decoding.diffusion.stops.contiguous import Contiguous
from weft.decoding.diffusion.train.lists.drawing import drawn_question
from weft.decoding.diffusion.train.lists.source import Mix
from weft.decoding.network.options import NetworkOptions
from weft.decoding.speculative.chance import Keyed

_AT_ONCE: Final = 48
"""Rows of a pass."""
_HINT: Final = "take list-full or list-block, or what `weft train-diffusion list` makes"

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class OwnText:
    """A prompt and what the model wrote after it, filled up with EOS: [prompt], [slots]."""

    prompt: tuple[int, ...]
    answer: Ids

    @property
    def ids(self) -> Ids:
        """Both, [prompt + slots]."""
        return np.array([*self.prompt, *self.answer], dtype=np.int64)


def list_model(folder: Path, threads: int | None) -> ModelAdapter:
    """Raises: `InputError` for a folder that cannot be read, or a model that answers no list
    questions.
    """
    try:
        found = load(folder, NetworkOptions(dtype="float32", threads=threads))
    except CapabilityError as error:
        raise InputError(f"{folder} is no list model: {error.message}", hint=_HINT) from error
    if (found.traits.vocabulary, found.traits.mask_id) != (words.SIZE, words.MASK):
        raise InputError(f"{folder} is no list model", hint=_HINT)
    return NetworkAdapter(found.network, found.traits)


def prompts(count: int, slots: int, chance: np.random.Generator) -> list[tuple[int, ...]]:
    """Of questions that are learnt from and whose answers fit into so many slots."""
    mix = Mix()
    forms = [
        (name, n, often * weight)
        for name, often in mix.operations.items()
        for n, weight in mix.sizes.items()
        if LANGUAGES[name].shortest <= n <= LANGUAGES[name].longest
    ]
    weights = np.array([weight for *_, weight in forms])
    found: list[tuple[int, ...]] = []
    while len(found) < count:
        name, n, _ = forms[chance.choice(len(forms), p=weights / weights.sum())]
        question = drawn_question(name, n, chance)
        if LANGUAGES[name].length(question) <= slots:
            found.append(question.prompt)
    return found


def written(
    adapter: ModelAdapter,
    asked: Sequence[tuple[int, ...]],
    slots: int,
    on_text: Callable[[int], None],
    stop: Callable[[], bool],
) -> list[OwnText] | None:
    """An answer to each prompt; None when `stop` said so. `on_text` hears how many are there."""
    texts: list[OwnText] = []
    for first in range(0, len(asked), _AT_ONCE):
        some = asked[first : first + _AT_ONCE]
        rows = rows_of(adapter, some, slots, [Fixed(Every(1), "confidence")] * len(some))
        denoised(rows, adapter)
        for prompt, row in zip(some, rows, strict=True):
            answer = np.full(slots, words.EOS, dtype=np.int64)
            answer[: len(row.kept)] = row.kept
            texts.append(OwnText(prompt, answer))
        on_text(len(texts))
        if stop():
            return None
    return texts


def rows_of(
    adapter: ModelAdapter,
    asked: Sequence[tuple[int, ...]],
    slots: int,
    policies: Sequence[CommitPolicy],
) -> list[Denoising]:
    """A row for each prompt, with its policy; the window is all of the answer, where the model has
    no blocks of its own.
    """
    rows = []
    for number, (prompt, policy) in enumerate(zip(asked, policies, strict=True)):
        adapter.forget(number)
        canvas = Canvas(prompt, slots, words.MASK, row=number)
        plugs = plugs_of(policy, adapter.traits)
        rows.append(Denoising(canvas, plugs, adapter.traits, Keyed(0), GREEDY))
    return rows


def plugs_of(policy: CommitPolicy, traits: Traits) -> Plugs:
    """Nothing but the policy decides."""
    return Plugs(policy, Blocks(), exact_cache(traits), Contiguous())
