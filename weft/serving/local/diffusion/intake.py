"""Makes rows of a diffusion model from requests: checks, templates, tokenizes, lays out a canvas.

A schema or grammar becomes a structure that is filled in. A canvas grows in pieces up to
`max_tokens`: a text that ends early uses no slots after its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from weft.core.ports.model import ModelRequest
from weft.core.schema import closed
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import DenoisingRow
from weft.decoding.diffusion.guard.control_tokens import ForeignSpan, refuse_forged
from weft.decoding.diffusion.guard.moderation import ModerationGuard, RefusalProbe, RefusalQuery
from weft.decoding.diffusion.ports import (
    BlockSchedule,
    DecoderConfig,
    MovingScheduleSession,
    OutputGuard,
    ScheduleSession,
)
from weft.decoding.diffusion.schedules import fill_of
from weft.decoding.diffusion.stats import Stats
from weft.decoding.diffusion.structure.compiler import StructureCompiler
from weft.decoding.diffusion.structure.filling import StructureFiller
from weft.decoding.diffusion.structure.languages.token_automaton import TokenVocabulary
from weft.decoding.diffusion.structure.structure import Structure
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.serving.generation_config import DIFFUSION_TEMPERATURE
from weft.serving.local.answer import AnswerText
from weft.serving.local.diffusion.decoders import DiffusionDecoders
from weft.serving.local.diffusion.row import CompletionLabels, DiffusionRow
from weft.serving.local.grammar import AnswerGrammar, GrammarCompiler, SchemaBounds
from weft.serving.local.options import LocalOptions, check_diffusion_request
from weft.serving.local.request import (
    check_request,
    or_default,
    prompt_of,
    room_after,
    sampling_params,
    seed_of,
)
from weft.serving.local.ticket import Ticket
from weft.serving.local.vocabulary import Vocabulary

if TYPE_CHECKING:
    from weft.decoding.diffusion.models.loading import DiffusionModel


class StructureBuilder:
    """Makes structures for one model. A schema becomes a skeleton where possible; the rest is
    written from left to right, constrained by the grammar of autoregressive models.
    """

    def __init__(self, traits: ModelTraits, vocabulary: Vocabulary, options: LocalOptions) -> None:
        self._traits = traits
        self._vocabulary = vocabulary
        self._grammars = GrammarCompiler(vocabulary, options)
        self._bounds = SchemaBounds(options.max_string_chars, options.max_items)

    def build(self, request: ModelRequest, room: int) -> Structure | None:
        """The structure of an answer of at most `room` tokens; None: any text.

        Raises: `ModelRequestError` for a schema or grammar that is invalid, cannot be enforced, or
        whose shortest answer does not fit.
        """
        if request.schema is None and request.grammar is None:
            return None
        grammar = self._grammar(request)  # so that all kinds of models refuse it alike
        schema = None if request.schema is None else self._bounds.put_on(closed(request.schema))
        return self._structures.start(room=room, schema=schema, follow=lambda: grammar)

    def _grammar(self, request: ModelRequest) -> AnswerGrammar:
        if request.schema is not None:
            return self._grammars.start(closed(request.schema))
        assert request.grammar is not None
        return self._grammars.read(request.grammar)

    @cached_property
    def _structures(self) -> StructureCompiler:
        traits = self._traits
        return StructureCompiler(TokenVocabulary(self._vocabulary, traits.banned, traits.end_ids))


@dataclass(frozen=True, slots=True)
class GrowingSchedule:
    """`schedule` that adds `slots` when the canvas is full, up to the end of a model's block."""

    schedule: BlockSchedule
    slots: int

    @property
    def beyond(self) -> bool:
        return self.schedule.beyond

    def begin(self, canvas: Canvas, traits: ModelTraits) -> ScheduleSession:
        inner = self.schedule.begin(canvas, traits)
        if isinstance(inner, MovingScheduleSession):
            return _MovingBlocks(inner, self.slots, traits)
        return _GrowingBlocks(inner, self.slots, traits)


def piece(slots: int, length: int, block: int) -> int:
    """The slots to add to a canvas of `length`: `slots`, and the rest of a block of `block`."""
    return slots + (-(length + slots) % block if block else 0)


class _GrowingBlocks:
    def __init__(self, inner: ScheduleSession, slots: int, traits: ModelTraits) -> None:
        self._inner = inner
        self._slots = slots
        self._block = traits.block
        self._fill = fill_of(traits)

    def first(self, canvas: Canvas) -> range:
        return self._inner.first(canvas)

    def following(self, canvas: Canvas, stats: Stats | None) -> range:
        window = self._inner.following(canvas, stats)
        if not window and canvas.grow(piece(self._slots, canvas.length, self._block), self._fill):
            window = self._inner.following(canvas, stats)
        return window


class _MovingBlocks(_GrowingBlocks):
    def __init__(self, inner: MovingScheduleSession, slots: int, traits: ModelTraits) -> None:
        super().__init__(inner, slots, traits)
        self._moving = inner

    def moved(self, canvas: Canvas, stats: Stats) -> range:
        return self._moving.moved(canvas, stats)


_PROBE_SLOTS = 32


class DiffusionIntake:
    """Makes rows for one model; `name` is the model name in completions."""

    def __init__(
        self, model: DiffusionModel, vocabulary: Vocabulary, options: LocalOptions, name: str
    ) -> None:
        self._model = model
        self._traits = model.traits
        self._vocabulary = vocabulary
        self._options = options
        self._name = name
        self._decoders = DiffusionDecoders(model.traits, options.decode)
        self._structures = StructureBuilder(model.traits, vocabulary, options)

    def row(self, ticket: Ticket) -> DiffusionRow:
        """Raises: `ModelRequestError` and `CapabilityError` for what this model cannot answer."""
        request = ticket.request
        check_diffusion_request(request)
        check_request(request)
        if self._options.priors is not None and request.schema is not None:
            self._options.priors.check_schema(closed(request.schema))
        prompt = prompt_of(request, self._vocabulary, self._model.network.context_tokens)
        self._check_prompt(prompt)
        room = room_after(len(prompt), self._model.network.context_tokens)
        max_tokens = min(
            or_default(request.sampling.max_tokens, self._options.default_max_tokens), room
        )
        decoder = self._decoders.decoder(request.decode)
        structure = self._structures.build(request, max_tokens)
        params = sampling_params(
            request.sampling, self._model.network.generation, DIFFUSION_TEMPERATURE
        )
        config = self._guarded(decoder.config)
        return DiffusionRow(
            ticket,
            prompt,
            len(prompt) + max_tokens,
            self._beginning(request, prompt, max_tokens, config, params, structure),
            AnswerText(self._vocabulary.bytes_of, request.sampling.stop),
            CompletionLabels(self._name, decoder.method, decoder.lossless),
            frozenset(request.sampling.stop_token_ids),
            structure,
            begin_probe=None if structure is None else self._probe(prompt),
            repeatable=params.greedy or request.sampling.seed is not None,
        )

    def _probe(self, prompt: list[int]) -> Callable[[int], RefusalQuery] | None:
        """The probe for a refusal before a structured answer, if refusals are configured."""
        if not self._options.refusals:
            return None
        ids = (self._vocabulary.encode_plain(text) for text in self._options.refusals)
        openings = tuple(tuple(opening[:_PROBE_SLOTS]) for opening in ids)
        probe = RefusalProbe(openings, slots=_PROBE_SLOTS)
        return lambda row: probe.begin(prompt, self._traits, row)

    def _check_prompt(self, prompt: list[int]) -> None:
        """Refuse masks: in a prompt they are no slots of the answer, and no request needs one."""
        self._model.check_prompt(prompt)
        mask = frozenset() if self._traits.mask_id is None else frozenset({self._traits.mask_id})
        if prompt:
            refuse_forged(prompt, [ForeignSpan(0, len(prompt), "prompt")], mask)

    def _guarded(self, config: DecoderConfig) -> DecoderConfig:
        guards: tuple[OutputGuard, ...] = (*config.guards, *self._options.guards)
        if self._options.moderator is not None:
            guards += (ModerationGuard(self._options.moderator, self._vocabulary.decode),)
        return replace(config, guards=guards)

    def _beginning(
        self,
        request: ModelRequest,
        prompt: list[int],
        max_tokens: int,
        config: DecoderConfig,
        params: SamplingParams,
        structure: Structure | None,
    ) -> Callable[[int], DenoisingRow]:
        """A function that begins an answer of at most `max_tokens`, in a row of the cache."""
        sampling = request.sampling
        ends = frozenset() if request.extra.get("ignore_eos") else self._traits.end_ids
        traits = replace(self._traits, end_ids=ends | frozenset(sampling.stop_token_ids))
        rng = CounterRng(seed_of(sampling))
        slots = self._options.canvas_tokens
        length = min(max_tokens, piece(slots, len(prompt), traits.block))

        def begin(row: int) -> DenoisingRow:
            if structure is not None:
                filler = StructureFiller(structure, traits)
                canvas = filler.canvas(prompt, row=row)
                return DenoisingRow(canvas, filler.configure(config), traits, rng, params)
            limit = len(prompt) + max_tokens
            canvas = Canvas(prompt, length, fill_of(traits), row=row, limit=limit)
            growing = replace(config, schedule=GrowingSchedule(config.schedule, slots))
            return DenoisingRow(canvas, growing, traits, rng, params)

        return begin
