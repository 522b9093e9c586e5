"""From a request to a row of a diffusion model: checked, templated, tokenised, its canvas laid out.

Foreign text and schemas come in here; what does not fit is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from weft.core.ports.model import ModelRequest
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import Denoising
from weft.decoding.diffusion.schedules.fixed import fill_of
from weft.decoding.speculative.chance import Keyed
from weft.serving.local.answer import Answer
from weft.serving.local.diffusion.growing import Growing, piece
from weft.serving.local.diffusion.refusals import check_possible
from weft.serving.local.diffusion.row import DiffusionRow, Labels
from weft.serving.local.diffusion.ways import Way, Ways
from weft.serving.local.options import LocalOptions
from weft.serving.local.request import (
    check_request,
    given,
    prompt_of,
    room_after,
    seed_of,
    shaping_of,
)
from weft.serving.local.ticket import Ticket
from weft.serving.local.vocabulary import Vocabulary

if TYPE_CHECKING:
    from weft.decoding.diffusion.models.loading import DiffusionModel

_EXTRA = frozenset({"ignore_eos"})


class DiffusionIntake:
    """Makes rows for one model; `name` is what completions call it."""

    def __init__(
        self, model: DiffusionModel, vocabulary: Vocabulary, options: LocalOptions, name: str
    ) -> None:
        self._model = model
        self._traits = model.traits
        self._vocabulary = vocabulary
        self._options = options
        self._name = name
        self._ways = Ways(model.traits, options.decode)

    def row(self, ticket: Ticket) -> DiffusionRow:
        """Raises: `ModelRequestError` and `CapabilityError` for what this model cannot answer."""
        request = ticket.request
        check_possible(request)
        check_request(request, _EXTRA)
        prompt = prompt_of(request, self._vocabulary)
        self._model.check_prompt(prompt)
        room = room_after(len(prompt), self._model.network.context_tokens)
        most = min(given(request.sampling.max_tokens, self._options.default_max_tokens), room)
        way = self._ways.way(request.decode)
        return DiffusionRow(
            ticket,
            prompt,
            len(prompt) + most,
            self._beginning(request, prompt, most, way),
            Answer(self._vocabulary.bytes_of, request.sampling.stop),
            Labels(self._name, way.method, way.lossless),
            frozenset(request.sampling.stop_token_ids),
        )

    def _beginning(
        self, request: ModelRequest, prompt: list[int], most: int, way: Way
    ) -> Callable[[int], Denoising]:
        """What makes the writing of at most `most` tokens, in a row of the cache."""
        sampling = request.sampling
        ends = frozenset() if request.extra.get("ignore_eos") else self._traits.end_ids
        traits = replace(self._traits, end_ids=ends | frozenset(sampling.stop_token_ids))
        slots = self._options.canvas_tokens
        plugs = replace(way.plugs, schedule=Growing(way.plugs.schedule, slots))
        shaping = shaping_of(sampling, self._model.network.habits)
        chance = Keyed(seed_of(sampling))
        length = min(most, piece(slots, len(prompt), traits.block))

        def begin(number: int) -> Denoising:
            limit = len(prompt) + most
            canvas = Canvas(prompt, length, fill_of(traits), row=number, limit=limit)
            return Denoising(canvas, plugs, traits, chance, shaping)

        return begin
