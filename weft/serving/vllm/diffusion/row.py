"""One request inside vLLM: the local denoising loop, its canvas, and its final tokens.

Predictions come from outside: neither vLLM nor torch is imported here.
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
    """Implements `CacheSession`: vLLM's canvas is from slot `base` on, and its cache before that.

    The row moves `base` to the end of a region when it emits it.
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
        """See `CacheSession`."""
        end = self.end(canvas)
        return CacheFeed(np.arange(self.base, end), end)

    def note(self, canvas: Canvas, action: Action) -> None:
        """See `CacheSession`. Every pass reads the whole canvas: nothing to record."""

    def persist(self, canvas: Canvas, following: range) -> CacheFeed | None:
        """See `CacheSession`."""
        end = self.end(canvas)
        if following and following.start < end:
            return None
        return CacheFeed(np.arange(self.base, end), min(end + 1, canvas.length), "persist")


@dataclass(frozen=True, slots=True)
class CanvasCachePolicy:
    """Implements `CachePolicy` for one row: vLLM caches everything before the canvas for good.

    Exact for models with blocks, as far as blocks are finished. For models whose slots all see each
    other, the prompt is read alone and finished canvases are frozen (FreeCache's idea, arXiv
    2505.21467), and the slots after the canvas do not exist.
    """

    region: CanvasRegion
    predicts: bool = False
    exact: bool = False

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> CanvasRegion:
        """See `CachePolicy`."""
        return self.region


class Predictions(Protocol):
    """Predictions of one pass over one row, aligned: row i predicts slot i."""

    def logits(self, slots: Slots) -> NDArray[np.float32]:
        """[slots, vocabulary]; banned tokens of the traits are -inf."""

    def stats(self, canvas: Canvas, slots: Slots, rng: CounterRng) -> tuple[Stats, SampledTokens]:
        """The results of `stats_of` and of a greedy `drawn_from` on these logits."""


class CanvasRow:
    """A text in vLLM: passes over its canvas, then one over its final tokens, which are emitted.

    `most_tokens`: upper bound of the answer. `ends`: whether a terminator ends it.

    Raises: `SpecError`, see `served_config`.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        most_tokens: int,
        decoder: DecoderRequest,
        served: ServedCanvas,
        params: SamplingParams,
        *,
        ends: bool = True,
    ) -> None:
        traits = served.traits if ends else replace(served.traits, end_ids=frozenset())
        assert traits.mask_id is not None
        self._mask = traits.mask_id
        self._region = CanvasRegion(len(prompt), served.width, traits.block)
        config = served_config(decoder, served)
        cache = CanvasCachePolicy(self._region, predicts=config.cache.predicts)
        canvases = -(-most_tokens // served.width)
        canvas = Canvas(prompt, canvases * served.width, self._mask)
        self._rng, self._greedy = CounterRng(decoder.seed), params.greedy
        self._denoising = DenoisingRow(
            canvas, replace(config, cache=cache), traits, self._rng, params
        )

    @property
    def base(self) -> int:
        """The slot where vLLM's canvas begins."""
        return self._region.base

    @property
    def over(self) -> bool:
        """Whether everything was emitted."""
        return self._denoising.over

    @property
    def counters(self) -> DenoisingCounters:
        """Counts so far."""
        return self._denoising.counters

    def drafts(self, width: int) -> list[int]:
        """Input of the next pass, from slot `base` on: the canvas, padded with masks."""
        ids: list[int] = self._denoising.canvas.ids[self.base : self.base + width].tolist()
        return ids + [self._mask] * (width - len(ids))

    def step(self, rows: int, predictions: Predictions) -> list[int]:
        """Apply the predictions of a pass over `rows` slots of the canvas; returns final tokens.

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
            denoising.settle([predictions.logits(query.wanted)])
            return emitted
        if denoising.wants_statistics and self._greedy:
            stats = predictions.stats(denoising.canvas, query.wanted, self._rng)
            denoising.settle_seen(*stats)
        else:
            denoising.settle([predictions.logits(query.wanted)])
        return []

    def _final(self) -> list[int]:
        """The tokens of the canvas, up to and including a terminator that ends the text."""
        denoising, region = self._denoising, self._region
        end = region.end(denoising.canvas)
        if denoising.finish == "stop":
            end = min(end, denoising.end + 1)
        final: list[int] = denoising.canvas.ids[region.base : end].tolist()
        return final
