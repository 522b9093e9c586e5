"""Denoising: one text from masks to tokens, and the loop that batches the queries of all rows.

A row is a state machine that asks for passes and takes answers: it predicts, proposes, filters,
writes, and continues with the next block. Rows share passes and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import Action, SlotTokens
from weft.decoding.diffusion.adapter import ModelAdapter, ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.ports import (
    CacheFeed,
    DecoderConfig,
    MovingScheduleSession,
    ProbingSession,
    Refusal,
)
from weft.decoding.diffusion.prediction import SlotPredictor
from weft.decoding.diffusion.query import Logits, PassKind, Query
from weft.decoding.diffusion.stats import SampledTokens, Stats
from weft.decoding.sampling import SamplingParams, TokenRng


@dataclass(slots=True)
class DenoisingCounters:
    """Counters of one row. A pass counts once for each row that takes part, whatever else is in it.

    passes     by kind, "supervisor" among them: passes of another model
    tokens     that were read, by all passes
    order      (step, slot of the answer) of each commit
    kept       tokens of the answer, without its terminator
    discarded  decided tokens outside the answer
    """

    passes: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    commits: int = 0
    edits: int = 0
    remasks: int = 0
    forced: int = 0
    order: list[tuple[int, int]] = field(default_factory=list)
    kept: int = 0
    discarded: int = 0

    @property
    def forwards(self) -> int:
        """All passes of the model, but not those of a supervisor."""
        return self.passes.total() - self.passes["supervisor"]

    @property
    def tokens_per_forward(self) -> float:
        """Tokens kept for each pass, those that only store keys or check included."""
        return self.kept / self.forwards if self.forwards else 0.0

    @property
    def tokens_per_query(self) -> float:
        """Tokens kept for each token read: the efficiency where compute is the limit."""
        return self.kept / self.tokens if self.tokens else 0.0

    def count_pass(self, queries: tuple[Query, ...], kind: PassKind) -> None:
        """Count a pass with `queries` of this row."""
        self.passes[kind] += 1
        self.tokens += sum(query.tokens for query in queries)

    def count_action(self, action: Action, step: int, first: int) -> None:
        """Count what was done in `step`; the answer begins at slot `first`."""
        self.commits += len(action.commit)
        self.edits += len(action.edit)
        self.remasks += len(action.remask)
        self.order += [(step, int(slot) - first) for slot in action.commit.slots]


class ActionFilter:
    """Passes proposed actions through the verifiers, bounds their retractions, forces progress."""

    def __init__(
        self,
        canvas: Canvas,
        config: DecoderConfig,
        traits: ModelTraits,
        counters: DenoisingCounters,
    ) -> None:
        self._canvas, self._commit, self._counters = canvas, config.commit, counters
        self._verifiers = [one.begin(canvas, traits) for one in config.verifiers]
        self._bound = 0

    def begin_block(self) -> None:
        """Renew the bound on proposals with retractions, by the number of open slots."""
        canvas = self._canvas
        self._bound = canvas.step_in_block + self._commit.most_forwards(len(canvas.open))

    def filtered(self, action: Action, stats: Stats, drawn: SampledTokens) -> Action:
        """`action` after the verifiers, within the bound, and with progress."""
        for verifier in self._verifiers:
            before = verifier.passes
            action = verifier.verified(action, stats, drawn, self._canvas)
            self._counters.passes["supervisor"] += verifier.passes - before
        if self._canvas.step_in_block >= self._bound:
            action = action.only_commits
        if action.progresses or not stats.open.any():
            return action
        self._counters.forced += 1
        surest = np.flatnonzero(stats.open)[stats.confidence[stats.open].argmax()]
        return Action(commit=SlotTokens.of(stats.slots[[surest]], drawn.ids[[surest]]))


Finish = Literal["stop", "length", "refused"]
_NOISE_ID: Final = 0
"""What an opened slot holds where the model has no mask."""


class DenoisingRow:
    """The denoising of one canvas. Rows with equal canvas, config and rng write equal texts.

    over      no more queries follow
    finish    why it is over
    end       the slot after the answer's last token, its terminator not counted
    refusal   of a guard, if one refused
    """

    def __init__(
        self,
        canvas: Canvas,
        config: DecoderConfig,
        traits: ModelTraits,
        rng: TokenRng,
        sampling: SamplingParams,
    ) -> None:
        self.canvas = canvas
        self.counters = DenoisingCounters()
        self.finish: Finish | None = None
        self.refusal: Refusal | None = None
        self.end = canvas.first
        self._config = config
        self._blocks = config.schedule.begin(canvas, traits)
        canvas.window = self._blocks.first(canvas)
        self._commits = commits = config.commit.begin(canvas, traits)
        self._probing = commits if isinstance(commits, ProbingSession) else None
        self._cache = cache = config.cache.begin(canvas, traits)
        self._stop = config.stop.begin(canvas, traits)
        self._predictor = SlotPredictor(canvas, config, traits, commits, cache, rng, sampling)
        self._filter = ActionFilter(canvas, config, traits, self.counters)
        self._guards = [one.begin(canvas, traits) for one in config.guards]
        self._fill = _NOISE_ID if traits.mask_id is None else traits.mask_id
        self._probes: tuple[Query, ...] = ()
        self._pending: tuple[Stats, SampledTokens] | None = None
        self._owed: tuple[CacheFeed, range] | None = None
        if not canvas.window:
            self._finish("length", canvas.length)
            return
        self._filter.begin_block()
        if not len(canvas.open):
            self._leave(None)

    @property
    def over(self) -> bool:
        return self.finish is not None and self._owed is None

    @property
    def kept(self) -> NDArray[np.int64]:
        """The answer: up to `end` when it is over, else what is released."""
        end = self.canvas.released if self.finish is None else self.end
        return self.canvas.ids[self.canvas.first : end]

    def queries(self) -> tuple[Query, ...]:
        """The queries of the next pass, at least one."""
        if self._owed is not None:
            queries: tuple[Query, ...] = (self._persisting(*self._owed),)
        else:
            queries = self._probes or self._predictor.queries()
        self.counters.count_pass(queries, queries[0].kind)
        return queries

    def settle(self, answers: Sequence[Logits]) -> None:
        """Take the answers to `queries`, in their order."""
        if self._owed is not None:
            self._persisted(answers[0])
        elif self._probes:
            assert self._probing is not None
            pairs = zip(self._probes, answers, strict=True)
            results = [self._predictor.answer(*one) for one in pairs]
            self._do(self._probing.probed(results, self.canvas))
        else:
            self.settle_seen(*self._predictor.seen(answers))

    @property
    def wants_statistics(self) -> bool:
        """Whether the next pass needs no logits, so that `settle_seen` can be called."""
        return not (self._owed or self._probes or self._predictor.wants_logits)

    def settle_seen(self, stats: Stats, drawn: SampledTokens) -> None:
        """As `settle`, with statistics that were computed elsewhere from the wanted logits."""
        if self._stays(stats):
            self._pending = stats.within(self.canvas), drawn
            self._do(self._commits.propose(*self._pending, self.canvas))

    # --- one proposal

    def _stays(self, stats: Stats) -> bool:
        """Let the schedule move the window; false where it added or removed slots."""
        canvas = self.canvas
        if not isinstance(self._blocks, MovingScheduleSession):
            return True
        length = canvas.length
        canvas.window = self._blocks.moved(canvas, stats)
        if canvas.length == length:
            return True
        canvas.step += 1
        canvas.step_in_block += 1
        self._predictor.forget()
        self._filter.begin_block()
        return False

    def _do(self, action: Action) -> None:
        """Apply a proposal, unless it asks for probes first."""
        self._probes = action.probes
        if action.probes:
            return
        assert self._pending is not None
        stats, drawn = self._pending
        action = self._filter.filtered(action, stats, drawn)
        self._perform(action)
        self._predictor.soft = action.soft
        self.canvas.step += 1
        self.canvas.step_in_block += 1
        self._advance(stats, action)

    def _perform(self, action: Action) -> None:
        canvas = self.canvas
        action.perform(canvas, self._fill)
        self.counters.count_action(action, canvas.step, canvas.first)
        self._cache.note(canvas, action)

    # --- from block to block

    def _advance(self, stats: Stats, action: Action) -> None:
        canvas = self.canvas
        if action.again:  # what is written may still change
            return
        end = self._stop.ended(canvas, stats)
        if end is not None:
            self._finish("stop", end)
        elif not len(canvas.open):
            self._leave(stats)

    def _leave(self, stats: Stats | None) -> None:
        """The window is decided: review it, store its keys, go to the next one."""
        canvas = self.canvas
        if not self._release(canvas.decided_to):
            return
        following = self._blocks.following(canvas, stats)
        if not following:
            self._finish("length", canvas.length)
            return
        feed = self._cache.persist(canvas, following)
        if feed is None:
            self._enter(following)
        else:
            self._owed = (feed, following)

    def _enter(self, following: range) -> None:
        canvas = self.canvas
        canvas.window = following
        canvas.block += 1
        canvas.step_in_block = 0
        self._predictor.forget()
        self._filter.begin_block()
        if not len(canvas.open):
            self._leave(None)

    def _persisting(self, feed: CacheFeed, following: range) -> Query:
        """The pass over a finished block; it may write the first slot of the next."""
        canvas = self.canvas
        wanted = []
        if self._config.cache.predicts and following and canvas.undecided[following.start]:
            wanted = [following.start]
        slots = np.array(wanted, dtype=np.int64)
        return Query(canvas, feed.slots, slots, feed.reach, kind="persist")

    def _persisted(self, logits: Logits) -> None:
        assert self._owed is not None
        following = self._owed[1]
        self._owed = None
        if self.finish is not None:
            return
        self._enter(following)
        if len(logits):
            slots = np.array([following.start], dtype=np.int64)
            drawn = self._predictor.drawn(slots, logits)
            self._perform(Action(commit=SlotTokens.of(slots, drawn.ids)))

    # --- the end

    def _release(self, end: int) -> bool:
        """Release the slots before `end`; a refusal of a guard ends the row."""
        canvas = self.canvas
        for guard in self._guards if end > canvas.released else ():
            self.refusal = guard.review(canvas, end)
            if self.refusal is not None:
                self._close("refused", canvas.released)
                return False
        canvas.released = max(canvas.released, end)
        return True

    def _finish(self, finish: Finish, end: int) -> None:
        if not self._release(end):
            return
        self._close(finish, end)
        feed = self._cache.persist(self.canvas, range(0)) if self._config.keep else None
        if feed is not None:
            self._owed = (feed, range(0))

    def _close(self, finish: Finish, end: int) -> None:
        canvas = self.canvas
        self.finish, self.end = finish, end
        self.counters.kept = end - canvas.first
        decided = canvas.ours & ~canvas.undecided
        self.counters.discarded = int(decided.sum()) - self.counters.kept


GREEDY = SamplingParams(0.0)


class LoopRow(Protocol):
    """A row of the loop: a `DenoisingRow`, or a wrapper of one."""

    @property
    def over(self) -> bool:
        """Whether no more queries follow."""

    def queries(self) -> tuple[Query, ...]:
        """The queries of the next pass."""

    def settle(self, answers: Sequence[Logits]) -> None:
        """Take the answers to `queries`, in their order."""


def denoise(rows: Sequence[LoopRow], adapter: ModelAdapter) -> bool:
    """One pass for all rows that are not over; whether there was one."""
    batches = [(row, row.queries()) for row in rows if not row.over]
    queries = [query for _, batch in batches for query in batch]
    if not queries:
        return False
    answers = iter(adapter.forward(queries))
    for row, batch in batches:
        row.settle([next(answers) for _ in batch])
    return True


def denoise_all(rows: Sequence[LoopRow], adapter: ModelAdapter) -> None:
    """Write all rows to their ends."""
    while not all(row.over for row in rows):
        denoise(rows, adapter)


def denoise_text(
    adapter: ModelAdapter,
    canvas: Canvas,
    config: DecoderConfig,
    rng: TokenRng,
    sampling: SamplingParams = GREEDY,
) -> DenoisingRow:
    """One text, written to its end."""
    row = DenoisingRow(canvas, config, adapter.traits, rng, sampling)
    denoise_all([row], adapter)
    return row
