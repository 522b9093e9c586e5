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
from weft.decoding.diffusion.filters import Guard
from weft.decoding.diffusion.guard.first_look import FirstLook, Look
from weft.decoding.diffusion.guard.moderation import Moderation
from weft.decoding.diffusion.guard.spans import Foreign, refuse_forged
from weft.decoding.diffusion.plugs import Plugs
from weft.decoding.diffusion.schedules.fixed import fill_of
from weft.decoding.diffusion.structure.filling import Filling
from weft.decoding.diffusion.structure.structure import Structure
from weft.decoding.speculative.chance import Keyed
from weft.serving.generation_config import DIFFUSION_TEMPERATURE
from weft.serving.local.answer import Answer
from weft.serving.local.diffusion.forms import Forms
from weft.serving.local.diffusion.growing import Growing, piece
from weft.serving.local.diffusion.refusals import check_possible
from weft.serving.local.diffusion.row import DiffusionRow, Labels
from weft.serving.local.diffusion.ways import Ways
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

_LOOKED_AT = 32
"""Slots."""


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
        self._forms = Forms(model.traits, vocabulary, options)

    def row(self, ticket: Ticket) -> DiffusionRow:
        """Raises: `ModelRequestError` and `CapabilityError` for what this model cannot answer."""
        request = ticket.request
        check_possible(request)
        check_request(request)
        if self._options.priors is not None and request.schema is not None:
            self._options.priors.check_schema(request.schema)
        prompt = prompt_of(request, self._vocabulary, self._model.network.context_tokens)
        self._check_prompt(prompt)
        room = room_after(len(prompt), self._model.network.context_tokens)
        most = min(given(request.sampling.max_tokens, self._options.default_max_tokens), room)
        way = self._ways.way(request.decode)
        form = self._forms.form(request, most)
        shaping = shaping_of(request.sampling, self._model.network.habits, DIFFUSION_TEMPERATURE)
        return DiffusionRow(
            ticket,
            prompt,
            len(prompt) + most,
            self._beginning(request, prompt, most, self._guarded(way.plugs), form),
            Answer(self._vocabulary.bytes_of, request.sampling.stop),
            Labels(self._name, way.method, way.lossless),
            frozenset(request.sampling.stop_token_ids),
            form,
            look=None if form is None else self._looking(prompt),
            repeatable=shaping.greedy or request.sampling.seed is not None,
        )

    def _looking(self, prompt: list[int]) -> Callable[[int], Look] | None:
        """What a model that is given a form would say without one, where that is to be known."""
        if not self._options.refusals:
            return None
        ids = (self._vocabulary.encode_plain(text) for text in self._options.refusals)
        look = FirstLook(tuple(tuple(opening[:_LOOKED_AT]) for opening in ids), slots=_LOOKED_AT)
        return lambda row: look.begin(prompt, self._traits, row)

    def _check_prompt(self, prompt: list[int]) -> None:
        """A mask in a prompt is none of the answer's slots; still nobody has a reason for one."""
        self._model.check_prompt(prompt)
        mask = frozenset() if self._traits.mask_id is None else frozenset({self._traits.mask_id})
        if prompt:
            refuse_forged(prompt, [Foreign(0, len(prompt), "prompt")], mask)

    def _guarded(self, plugs: Plugs) -> Plugs:
        guards: tuple[Guard, ...] = (*plugs.guards, *self._options.guards)
        if self._options.moderator is not None:
            guards += (Moderation(self._options.moderator, self._vocabulary.decode),)
        return replace(plugs, guards=guards)

    def _beginning(
        self,
        request: ModelRequest,
        prompt: list[int],
        most: int,
        plugs: Plugs,
        form: Structure | None,
    ) -> Callable[[int], Denoising]:
        """What makes the writing of at most `most` tokens, in a row of the cache."""
        sampling = request.sampling
        ends = frozenset() if request.extra.get("ignore_eos") else self._traits.end_ids
        traits = replace(self._traits, end_ids=ends | frozenset(sampling.stop_token_ids))
        shaping = shaping_of(sampling, self._model.network.habits, DIFFUSION_TEMPERATURE)
        chance = Keyed(seed_of(sampling))
        slots = self._options.canvas_tokens
        length = min(most, piece(slots, len(prompt), traits.block))

        def begin(row: int) -> Denoising:
            if form is not None:
                filling = Filling(form, traits)
                canvas = filling.canvas(prompt, row=row)
                return Denoising(canvas, filling.plugs(plugs), traits, chance, shaping)
            limit = len(prompt) + most
            canvas = Canvas(prompt, length, fill_of(traits), row=row, limit=limit)
            growing = replace(plugs, schedule=Growing(plugs.schedule, slots))
            return Denoising(canvas, growing, traits, chance, shaping)

        return begin
