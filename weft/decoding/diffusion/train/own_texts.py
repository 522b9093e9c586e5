"""What a diffusion model itself writes for prompts that may be learnt from, one token a pass.

The surest slot first, the likeliest token: the teacher of what makes decoding faster. Knows no
training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from weft.decoding.diffusion.plugs import Plugs
from weft.decoding.diffusion.policies.fixed import Fixed
from weft.decoding.diffusion.policies.pace import Every
from weft.decoding.diffusion.policy import CommitPolicy
from weft.decoding.diffusion.presets.usual import exact_cache
from weft.decoding.diffusion.schedules.fixed import Fixed as Blocks
from weft.decoding.diffusion.schedules.fixed import fill_of
from weft.decoding.diffusion.stops.contiguous import Contiguous
from weft.decoding.diffusion.train.order import Order
from weft.decoding.network.options import NetworkOptions
from weft.decoding.speculative.chance import Keyed

_AT_ONCE: Final = 48
"""Rows of a pass."""

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


def model_of(order: Order) -> NetworkAdapter:
    """The order's model, where it is to be trained.

    Raises: `InputError` for a folder that cannot be read, or a model without a mask.
    """
    assert order.model is not None
    options = NetworkOptions(dtype="float32", threads=order.threads, device=order.device)
    try:
        found = load(order.model, options, find=order.find)
    except CapabilityError as error:
        message = f"{order.model} is no diffusion model to learn from: {error.message}"
        raise InputError(message, hint=error.hint) from error
    if found.traits.mask_id is None or not found.traits.end_ids:
        raise InputError(
            f"{order.model} has no mask, or no token that ends a text",
            hint="such a model writes over noise, which neither of these trainings does",
        )
    return NetworkAdapter(found.network, found.traits)


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
            answer = np.full(slots, min(adapter.traits.end_ids), dtype=np.int64)
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
        canvas = Canvas(prompt, slots, fill_of(adapter.traits), row=number)
        plugs = plugs_of(policy, adapter.traits)
        rows.append(Denoising(canvas, plugs, adapter.traits, Keyed(0), GREEDY))
    return rows


def plugs_of(policy: CommitPolicy, traits: Traits) -> Plugs:
    """Nothing but the policy decides."""
    return Plugs(policy, Blocks(), exact_cache(traits), Contiguous())
