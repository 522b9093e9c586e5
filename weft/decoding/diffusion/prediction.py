"""Predictions for one canvas: the queries of a proposal, and statistics of their answers."""

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
from weft.decoding.diffusion.stats import (
    ProbeAnswer,
    SampledTokens,
    Stats,
    compute_stats,
    sample_tokens,
)
from weft.decoding.sampling import SamplingParams, TokenRng

_NO_SLOTS: Final[Slots] = np.empty(0, dtype=np.int64)


class SlotPredictor:
    """Queries predictions as `commits`, the cache and the guidance of `config` need them.

    soft  slots that the next pass reads as mixtures of tokens
    """

    def __init__(
        self,
        canvas: Canvas,
        config: DecoderConfig,
        traits: ModelTraits,
        commits: CommitSession,
        cache: CacheSession,
        rng: TokenRng,
        sampling: SamplingParams,
    ) -> None:
        self.soft: SoftSlots | None = None
        self._canvas, self._cache = canvas, cache
        self._rng, self._sampling, self._fresh = rng, sampling, config.fresh
        self._end_ids = traits.end_ids
        self._adjuster = commits if isinstance(commits, LogitsAdjustingSession) else None
        self._shadow_reader = commits if isinstance(commits, ShadowReadingSession) else None
        self._guidance = [one.begin(canvas, traits) for one in config.guidance]
        self._needs = config.commit.needs
        looks = (config.schedule.beyond, config.stop.beyond, *(v.beyond for v in config.verifiers))
        self._beyond = "beyond" in self._needs or any(looks)
        self._before: Stats | None = None
        self._extra_queries: list[Query | None] = []

    @property
    def wants_logits(self) -> bool:
        """Whether a component needs more of a prediction than its statistics."""
        others = self._guidance or self._adjuster or self._shadow_reader
        return bool(others) or "distribution" in self._needs

    def queries(self) -> tuple[Query, ...]:
        """The queries of one pass: the canvas's own, and those of guidance."""
        feed = self._cache.plan(self._canvas)
        shadow_reader = self._shadow_reader
        self._query = query = Query(
            self._canvas,
            feed.slots,
            self._wanted(feed),
            feed.reach,
            soft=self.soft,
            shadows=_NO_SLOTS if shadow_reader is None else shadow_reader.shadows(self._canvas),
            choice=feed.choice,
            kind=feed.kind,
        )
        self._extra_queries = [guide.asks(query) for guide in self._guidance]
        return (query, *(one for one in self._extra_queries if one is not None))

    def seen(self, answers: Sequence[Logits]) -> tuple[Stats, SampledTokens]:
        """Statistics of the answers to `queries`, in their order, and sampled tokens."""
        canvas = self._canvas
        slots, logits, shadow = self._split(answers)
        if self._adjuster is not None:
            logits = self._adjuster.adjust(logits, slots, canvas)
        keep, before = "distribution" in self._needs, self._before
        stats = compute_stats(
            canvas, slots, logits, self._end_ids, before=before, keep=keep, shadow=shadow
        )
        self._before = stats if keep else None
        return stats, self.drawn(slots, logits, fresh=self._fresh)

    def answer(self, query: Query, logits: Logits) -> ProbeAnswer:
        """Statistics of the answer to one probe query, and sampled tokens."""
        canvas, slots = query.canvas, query.wanted
        wanted, rest = logits[: len(slots)], logits[len(slots) :]
        shadow = (query.shadows, rest) if len(rest) else None
        stats = compute_stats(canvas, slots, wanted, self._end_ids, shadow=shadow)
        return ProbeAnswer(stats, sample_tokens(canvas, slots, wanted, self._sampling, self._rng))

    def drawn(self, slots: Slots, logits: Logits, *, fresh: bool = False) -> SampledTokens:
        """Tokens for `slots` of the canvas; see `sample_tokens`."""
        return sample_tokens(self._canvas, slots, logits, self._sampling, self._rng, fresh=fresh)

    def forget(self) -> None:
        """Drop earlier predictions, because the slots change."""
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
        """The wanted slots, their guided logits, and those of shadows."""
        query, rest = self._query, iter(answers[1:])
        count = len(query.wanted)
        logits = answers[0][:count]
        for guide, extra in zip(self._guidance, self._extra_queries, strict=True):
            answer = None if extra is None else next(rest)
            logits = guide.guided(logits, query.wanted, answer, self._canvas)
        shadow = (query.shadows, answers[0][count:]) if len(query.shadows) else None
        return query.wanted, logits, shadow
