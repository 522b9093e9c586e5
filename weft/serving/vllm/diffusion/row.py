"""One request inside vLLM: the local loop, what its canvas holds, and which tokens are final.

Knows neither vLLM nor torch: whoever runs the model tells what it predicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from weft.core.errors import InternalError
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.counters import Counters
from weft.decoding.diffusion.denoising import Denoising
from weft.decoding.diffusion.stats import Drawn, Stats
from weft.decoding.speculative.chance import Keyed
from weft.decoding.speculative.law import Shaping
from weft.serving.vllm.diffusion.asked import Asked
from weft.serving.vllm.diffusion.held import Held, Region
from weft.serving.vllm.diffusion.plugs import Served, plugs_inside


class Predictions(Protocol):
    """What the model said in one pass of one row, aligned: slot i is predicted by row i."""

    def logits(self, slots: Slots) -> NDArray[np.float32]:
        """[slots, vocabulary]; what the traits ban is -inf."""

    def seen(self, canvas: Canvas, slots: Slots, chance: Keyed) -> tuple[Stats, Drawn]:
        """What `stats_of` and a greedy `drawn_from` make of these logits."""


class CanvasRow:
    """A text as vLLM writes it: passes over its canvas, then one over what is final, which is
    emitted.

    `most_tokens`: what the request may get, a ceiling. `ends`: whether a terminator ends it.

    Raises: `SpecError`, see `plugs_inside`.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        most_tokens: int,
        asked: Asked,
        served: Served,
        shaping: Shaping,
        *,
        ends: bool = True,
    ) -> None:
        traits = served.traits if ends else replace(served.traits, end_ids=frozenset())
        assert traits.mask_id is not None
        self._mask = traits.mask_id
        self._region = Region(len(prompt), served.width, traits.block)
        plugs = plugs_inside(asked, served)
        held = Held(self._region, predicts=plugs.cache.predicts)
        canvases = -(-most_tokens // served.width)
        canvas = Canvas(prompt, canvases * served.width, self._mask)
        self._chance, self._greedy = Keyed(asked.seed), shaping.greedy
        self._denoising = Denoising(
            canvas, replace(plugs, cache=held), traits, self._chance, shaping
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
    def counters(self) -> Counters:
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
