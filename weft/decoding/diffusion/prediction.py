"""What the model is asked about one canvas before something is proposed, and what comes of that.

Knows no model, and not what is done with a prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.ports import (
    CacheFeed,
    CacheSession,
    CommitSession,
    DecoderConfig,
    LogitsAdjustingSession,
    ShadowReadingSession,
)
from weft.decoding.diffusion.query import Logits, Query, SoftSlots
from weft.decoding.diffusion.stats import ProbeAnswer, SampledTokens, Stats, drawn_from, stats_of
from weft.decoding.sampling import SamplingParams, TokenRng

_NO_SLOTS: Final[Slots] = np.empty(0, dtype=np.int64)


class SlotPredictor:
    """Asks for predictions of one canvas: what `commits`, the cache and the guidance of `plugs`
    want of them.

    soft  what the next pass reads as mixtures of tokens
    """

    def __init__(
        self,
        canvas: Canvas,
        plugs: DecoderConfig,
        traits: ModelTraits,
        commits: CommitSession,
        caching: CacheSession,
        chance: TokenRng,
        shaping: SamplingParams,
    ) -> None:
        self.soft: SoftSlots | None = None
        self._canvas, self._caching = canvas, caching
        self._chance, self._shaping, self._fresh = chance, shaping, plugs.fresh
        self._end_ids = traits.end_ids
        self._adjusting = commits if isinstance(commits, LogitsAdjustingSession) else None
        self._shadowing = commits if isinstance(commits, ShadowReadingSession) else None
        self._guiding = [one.begin(canvas, traits) for one in plugs.guidance]
        self._needs = plugs.commit.needs
        looks = (plugs.schedule.beyond, plugs.stop.beyond, *(v.beyond for v in plugs.verifiers))
        self._beyond = "beyond" in self._needs or any(looks)
        self._before: Stats | None = None
        self._guides: list[Query | None] = []

    @property
    def wants_logits(self) -> bool:
        """Whether somebody looks at more of a prediction than its statistics."""
        others = self._guiding or self._adjusting or self._shadowing
        return bool(others) or "distribution" in self._needs

    def queries(self) -> tuple[Query, ...]:
        """What to ask in one pass: of the model, and of the same for guidance."""
        feed = self._caching.plan(self._canvas)
        shadowing = self._shadowing
        self._asked = query = Query(
            self._canvas,
            feed.slots,
            self._wanted(feed),
            feed.reach,
            soft=self.soft,
            shadows=_NO_SLOTS if shadowing is None else shadowing.shadows(self._canvas),
            choice=feed.choice,
            kind=feed.kind,
        )
        self._guides = [guide.asks(query) for guide in self._guiding]
        return (query, *(one for one in self._guides if one is not None))

    def seen(self, answers: Sequence[Logits]) -> tuple[Stats, SampledTokens]:
        """The statistics of what `queries` asked, answered in their order, and tokens drawn."""
        canvas = self._canvas
        slots, logits, shadow = self._split(answers)
        if self._adjusting is not None:
            logits = self._adjusting.adjust(logits, slots, canvas)
        keep, before = "distribution" in self._needs, self._before
        stats = stats_of(
            canvas, slots, logits, self._end_ids, before=before, keep=keep, shadow=shadow
        )
        self._before = stats if keep else None
        return stats, self.drawn(slots, logits, fresh=self._fresh)

    def answer(self, query: Query, logits: Logits) -> ProbeAnswer:
        """What came of one query of a look."""
        canvas, slots = query.canvas, query.wanted
        wanted, rest = logits[: len(slots)], logits[len(slots) :]
        shadow = (query.shadows, rest) if len(rest) else None
        stats = stats_of(canvas, slots, wanted, self._end_ids, shadow=shadow)
        return ProbeAnswer(stats, drawn_from(canvas, slots, wanted, self._shaping, self._chance))

    def drawn(self, slots: Slots, logits: Logits, *, fresh: bool = False) -> SampledTokens:
        """Tokens for `slots` of the canvas; see `drawn_from`."""
        return drawn_from(self._canvas, slots, logits, self._shaping, self._chance, fresh=fresh)

    def forget(self) -> None:
        """What was predicted before is of other slots than what will be."""
        self._before = self.soft = None

    def _wanted(self, feed: CacheFeed) -> Slots:
        canvas, window = self._canvas, self._canvas.window
        wanted = canvas.open
        if "decided" in self._needs:
            inside = np.arange(window.start, window.stop)
            wanted = inside[~canvas.frozen[inside]]
        if self._beyond:
            behind = feed.slots[(feed.slots >= window.stop) & canvas.undecided[feed.slots]]
            wanted = np.concatenate([wanted, behind])
        return wanted

    def _split(
        self, answers: Sequence[Logits]
    ) -> tuple[Slots, Logits, tuple[Slots, Logits] | None]:
        """The slots that were wanted, their guided logits, and those of shadows."""
        query, rest = self._asked, iter(answers[1:])
        count = len(query.wanted)
        logits = answers[0][:count]
        for guiding, extra in zip(self._guiding, self._guides, strict=True):
            answer = None if extra is None else next(rest)
            logits = guiding.guided(logits, query.wanted, answer, self._canvas)
        shadow = (query.shadows, answers[0][count:]) if len(query.shadows) else None
        return query.wanted, logits, shadow
