"""One request inside vLLM: the local denoising loop, its canvas, and which tokens are final.

The model's predictions are told from outside: neither vLLM nor torch is known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from weft.core.errors import InternalError
from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.denoising import DenoisingCounters, DenoisingRow
from weft.decoding.diffusion.ports import CacheFeed
from weft.decoding.diffusion.stats import SampledTokens, Stats
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.serving.vllm.diffusion.decoder import DecoderRequest, ServedCanvas, served_config


class CanvasRegion:
    """Implements `Caching`. The slots from `base` on are in vLLM's canvas, those before are held.

    Who emits a finished region moves `base` to its end.
    """

    def __init__(self, base: int, width: int, block: int) -> None:
        self.base = base
        self._width, self._block = width, block

    def end(self, canvas: Canvas) -> int:
        """The slot after the last that may be written before the next pass over final tokens."""
        end = self.base + self._width
        if self._block:
            end = min(end, (self.base // self._block + 1) * self._block)
        return min(end, canvas.length)

    def plan(self, canvas: Canvas) -> CacheFeed:
        """See `Caching`."""
        end = self.end(canvas)
        return CacheFeed(np.arange(self.base, end), end)

    def note(self, canvas: Canvas, action: Action) -> None:
        """See `Caching`. All of the canvas is read in every pass: nothing to remember."""

    def persist(self, canvas: Canvas, following: range) -> CacheFeed | None:
        """See `Caching`."""
        end = self.end(canvas)
        if following and following.start < end:
            return None
        return CacheFeed(np.arange(self.base, end), min(end + 1, canvas.length), "persist")


@dataclass(frozen=True, slots=True)
class CanvasCachePolicy:
    """Implements `CachePolicy` for one row: vLLM's cache holds all before the canvas, for good.

    Exact for models with blocks, as far as blocks are finished; for models whose slots all see each
    other, it is the prompt read alone and finished canvases frozen (FreeCache's idea, arXiv
    2505.21467), and slots behind the canvas are not there.
    """

    region: CanvasRegion
    predicts: bool = False
    exact: bool = False

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> CanvasRegion:
        """See `CachePolicy`."""
        return self.region


class Predictions(Protocol):
    """What the model said in one pass of one row, aligned: slot i is predicted by row i."""

    def logits(self, slots: Slots) -> NDArray[np.float32]:
        """[slots, vocabulary]; what the traits ban is -inf."""

    def seen(self, canvas: Canvas, slots: Slots, chance: CounterRng) -> tuple[Stats, SampledTokens]:
        """What `stats_of` and a greedy `drawn_from` make of these logits."""


class CanvasRow:
    """A text as vLLM writes it: passes over its canvas, then one over what is final, which is
    emitted.

    `most_tokens`: what the request may get, a ceiling. `ends`: whether a terminator ends it.

    Raises: `SpecError`, see `served_config`.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        most_tokens: int,
        asked: DecoderRequest,
        served: ServedCanvas,
        shaping: SamplingParams,
        *,
        ends: bool = True,
    ) -> None:
        traits = served.traits if ends else replace(served.traits, end_ids=frozenset())
        assert traits.mask_id is not None
        self._mask = traits.mask_id
        self._region = CanvasRegion(len(prompt), served.width, traits.block)
        config = served_config(asked, served)
        held = CanvasCachePolicy(self._region, predicts=config.cache.predicts)
        canvases = -(-most_tokens // served.width)
        canvas = Canvas(prompt, canvases * served.width, self._mask)
        self._chance, self._greedy = CounterRng(asked.seed), shaping.greedy
        self._denoising = DenoisingRow(
            canvas, replace(config, cache=held), traits, self._chance, shaping
        )

    @property
    def base(self) -> int:
        """The slot where vLLM's canvas begins."""
        return self._region.base

    @property
    def over(self) -> bool:
        """Whether all was emitted."""
        return self._denoising.over

    @property
    def counters(self) -> DenoisingCounters:
        """What it took so far."""
        return self._denoising.counters

    def drafts(self, width: int) -> list[int]:
        """What the next pass reads, from slot `base` on: the canvas, with masks behind its end."""
        ids: list[int] = self._denoising.canvas.ids[self.base : self.base + width].tolist()
        return ids + [self._mask] * (width - len(ids))

    def step(self, rows: int, said: Predictions) -> list[int]:
        """Take what came of a pass over `rows` slots of the canvas. The tokens that are final now.

        vLLM gives fewer rows than its canvas has where the context ends.
        """
        denoising, region = self._denoising, self._region
        if denoising.over:
            return []
        if region.base + rows < region.end(denoising.canvas):
            denoising.canvas.limit = region.base + rows
            denoising.canvas.trim(denoising.canvas.limit)
        query, *others = denoising.queries()
        if others or query.scratch or query.soft is not None or len(query.shadows):
            raise InternalError("a decoder asks for more than vLLM's diffusion path can give")
        if query.kind == "persist":
            emitted = self._final()
            region.base += len(emitted)
            denoising.settle([said.logits(query.wanted)])
            return emitted
        if denoising.wants_statistics and self._greedy:
            seen = said.seen(denoising.canvas, query.wanted, self._chance)
            denoising.settle_seen(*seen)
        else:
            denoising.settle([said.logits(query.wanted)])
        return []

    def _final(self) -> list[int]:
        """The tokens of the canvas, the terminator included, if it ends here."""
        denoising, region = self._denoising, self._region
        end = region.end(denoising.canvas)
        if denoising.finish == "stop":
            end = min(end, denoising.end + 1)
        final: list[int] = denoising.canvas.ids[region.base : end].tolist()
        return final
