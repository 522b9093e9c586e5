"""One text on its way from masks to tokens: a state machine that asks for passes and takes answers.

Knows no model: the loop carries its queries to one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import Action, Writing
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.cache import Feed
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.counters import Counters
from weft.decoding.diffusion.filters import Refusal
from weft.decoding.diffusion.plugs import Plugs
from weft.decoding.diffusion.policy import Adjusting, Looking, Shadowing
from weft.decoding.diffusion.query import Query, Soft
from weft.decoding.diffusion.schedule import Moving
from weft.decoding.diffusion.stats import Answer, Drawn, Stats, drawn_from, stats_of
from weft.decoding.speculative.chance import Chance
from weft.decoding.speculative.law import Shaping

Finish = Literal["stop", "length", "refused"]
Logits = NDArray[np.float32]
_NOISE_ID: Final = 0
"""What an opened slot holds where the model has no mask."""
_NO_SLOTS: Final[Slots] = np.empty(0, dtype=np.int64)


class Denoising:
    """The writing of one canvas. Rows with equal canvas, plugs and chance write equal texts.

    over      nothing more will be asked
    finish    why it is over
    end       the slot after the answer's last token, its terminator not counted
    refusal   what a guard said, if one did
    """

    def __init__(
        self, canvas: Canvas, plugs: Plugs, traits: Traits, chance: Chance, shaping: Shaping
    ) -> None:
        self.canvas = canvas
        self.counters = Counters()
        self.finish: Finish | None = None
        self.end = canvas.first
        self.refusal: Refusal | None = None
        self._plugs, self._traits = plugs, traits
        self._chance, self._shaping = chance, shaping
        self._blocks = plugs.schedule.begin(canvas, traits)
        canvas.window = self._blocks.first(canvas)
        self._commits = commits = plugs.commit.begin(canvas, traits)
        self._looking = commits if isinstance(commits, Looking) else None
        self._adjusting = commits if isinstance(commits, Adjusting) else None
        self._shadowing = commits if isinstance(commits, Shadowing) else None
        self._caching = plugs.cache.begin(canvas, traits)
        self._stopping = plugs.stop.begin(canvas, traits)
        self._guiding = [one.begin(canvas, traits) for one in plugs.guidance]
        self._verifying = [one.begin(canvas, traits) for one in plugs.verifiers]
        self._guarding = [one.begin(canvas, traits) for one in plugs.guards]
        self._fill = _NOISE_ID if traits.mask_id is None else traits.mask_id
        self._needs = plugs.commit.needs
        looks = (plugs.schedule.beyond, plugs.stop.beyond, *(v.beyond for v in plugs.verifiers))
        self._beyond = "beyond" in self._needs or any(looks)
        self._bound = plugs.commit.most_forwards(len(canvas.open)) if canvas.window else 0
        self._soft: Soft | None = None
        self._looks: tuple[Query, ...] = ()
        self._pending: tuple[Stats, Drawn] | None = None
        self._owed: tuple[Feed, range] | None = None
        self._before: Stats | None = None
        self._guides: list[Query | None] = []
        if not canvas.window:
            self._finish("length", canvas.length)
        elif not len(canvas.open):
            self._leave(None)

    @property
    def over(self) -> bool:
        return self.finish is not None and self._owed is None

    @property
    def kept(self) -> NDArray[np.int64]:
        """The answer so far, or as it is: up to `end` when it is over, else what is released."""
        end = self.canvas.released if self.finish is None else self.end
        return self.canvas.ids[self.canvas.first : end]

    def queries(self) -> tuple[Query, ...]:
        """What to ask in the next pass, one query at least."""
        if self._owed is not None:
            asked: tuple[Query, ...] = (self._persisting(*self._owed),)
        elif self._looks:
            asked = self._looks
        else:
            query = self._query()
            self._guides = [guide.asks(query) for guide in self._guiding]
            asked = (query, *(one for one in self._guides if one is not None))
        self.counters.passed(asked, asked[0].kind)
        return asked

    def settle(self, answers: Sequence[Logits]) -> None:
        """Take what came of `queries`, in their order."""
        if self._owed is not None:
            self._persisted(answers[0])
        elif self._looks:
            assert self._looking is not None
            looked = [self._answer(*one) for one in zip(self._looks, answers, strict=True)]
            self._do(self._looking.looked(looked, self.canvas))
        else:
            self.settle_seen(*self._seen(answers))

    @property
    def wants_statistics(self) -> bool:
        """Whether nobody wants the logits of the next pass, so that `settle_seen` can be called."""
        others = self._owed or self._looks or self._guiding or self._adjusting or self._shadowing
        return not others and "distribution" not in self._needs

    def settle_seen(self, stats: Stats, drawn: Drawn) -> None:
        """As `settle`, with what was computed elsewhere from the logits that were wanted."""
        if self._stays(stats):
            self._pending = stats.within(self.canvas), drawn
            self._do(self._commits.propose(*self._pending, self.canvas))

    # --- one proposal

    def _query(self) -> Query:
        feed = self._caching.plan(self.canvas)
        shadowing = self._shadowing
        shadows = _NO_SLOTS if shadowing is None else shadowing.shadows(self.canvas)
        wanted = self._wanted(feed)
        self._asked = Query(
            self.canvas,
            feed.slots,
            wanted,
            feed.reach,
            soft=self._soft,
            shadows=shadows,
            choice=feed.choice,
            kind=feed.kind,
        )
        return self._asked

    def _wanted(self, feed: Feed) -> Slots:
        canvas, window = self.canvas, self.canvas.window
        wanted = canvas.open
        if "decided" in self._needs:
            inside = np.arange(window.start, window.stop)
            wanted = inside[~canvas.frozen[inside]]
        if self._beyond:
            behind = feed.slots[(feed.slots >= window.stop) & canvas.undecided[feed.slots]]
            wanted = np.concatenate([wanted, behind])
        return wanted

    def _seen(self, answers: Sequence[Logits]) -> tuple[Stats, Drawn]:
        """The statistics of what was asked by `_query`, and tokens drawn."""
        canvas = self.canvas
        slots, logits, shadow = self._split(answers)
        if self._adjusting is not None:
            logits = self._adjusting.adjust(logits, slots, canvas)
        keep = "distribution" in self._needs
        ends = self._traits.end_ids
        before = self._before
        stats = stats_of(canvas, slots, logits, ends, before=before, keep=keep, shadow=shadow)
        self._before = stats if keep else None
        drawn = drawn_from(
            canvas, slots, logits, self._shaping, self._chance, fresh=self._plugs.fresh
        )
        return stats, drawn

    def _answer(self, query: Query, logits: Logits) -> Answer:
        """To one query of a look."""
        canvas, slots = query.canvas, query.wanted
        wanted, rest = logits[: len(slots)], logits[len(slots) :]
        shadow = (query.shadows, rest) if len(rest) else None
        stats = stats_of(canvas, slots, wanted, self._traits.end_ids, shadow=shadow)
        return Answer(stats, drawn_from(canvas, slots, wanted, self._shaping, self._chance))

    def _stays(self, stats: Stats) -> bool:
        """Let the schedule move the window; false where slots came or went, and were not seen."""
        canvas = self.canvas
        if not isinstance(self._blocks, Moving):
            return True
        length = canvas.length
        canvas.window = self._blocks.moved(canvas, stats)
        if canvas.length == length:
            return True
        canvas.step += 1
        canvas.step_in_block += 1
        self._before = self._soft = None
        self._bound = canvas.step_in_block + self._plugs.commit.most_forwards(len(canvas.open))
        return False

    def _split(
        self, answers: Sequence[Logits]
    ) -> tuple[Slots, Logits, tuple[Slots, Logits] | None]:
        """The slots that were wanted, their guided logits, and those of shadows."""
        query, rest = self._asked, iter(answers[1:])
        count = len(query.wanted)
        logits = answers[0][:count]
        for guiding, extra in zip(self._guiding, self._guides, strict=True):
            answer = None if extra is None else next(rest)
            logits = guiding.guided(logits, query.wanted, answer, self.canvas)
        shadow = (query.shadows, answers[0][count:]) if len(query.shadows) else None
        return query.wanted, logits, shadow

    def _do(self, action: Action) -> None:
        """Carry out a proposal, unless it wants another look first."""
        self._looks = action.look
        if action.look:
            return
        assert self._pending is not None
        stats, drawn = self._pending
        action = self._allowed(action, stats, drawn)
        action.perform(self.canvas, self._fill)
        self._soft = action.soft
        canvas = self.canvas
        self.counters.did(action, canvas.step, canvas.first)
        self._caching.note(canvas, action)
        canvas.step += 1
        canvas.step_in_block += 1
        self._advance(stats, action)

    def _allowed(self, action: Action, stats: Stats, drawn: Drawn) -> Action:
        """The action after the verifiers, bounded, and with progress."""
        for verifying in self._verifying:
            before = verifying.passes
            action = verifying.verified(action, stats, drawn, self.canvas)
            self.counters.passes["supervisor"] += verifying.passes - before
        if self.canvas.step_in_block >= self._bound:
            action = action.only_commits
        if action.progresses or not stats.open.any():
            return action
        self.counters.forced += 1
        surest = np.flatnonzero(stats.open)[stats.confidence[stats.open].argmax()]
        return Action(commit=Writing.of(stats.slots[[surest]], drawn.ids[[surest]]))

    # --- from block to block

    def _advance(self, stats: Stats, action: Action) -> None:
        canvas = self.canvas
        if action.again:  # what is written may still change
            return
        end = self._stopping.ended(canvas, stats)
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
        feed = self._caching.persist(canvas, following)
        if feed is None:
            self._enter(following)
        else:
            self._owed = (feed, following)

    def _enter(self, following: range) -> None:
        canvas = self.canvas
        canvas.window = following
        canvas.block += 1
        canvas.step_in_block = 0
        self._before = None
        self._soft = None
        self._bound = self._plugs.commit.most_forwards(len(canvas.open))
        if not len(canvas.open):
            self._leave(None)

    def _persisting(self, feed: Feed, following: range) -> Query:
        """The pass over a finished block; it may write the first slot of the next."""
        canvas = self.canvas
        wanted = []
        if self._plugs.cache.predicts and following and canvas.undecided[following.start]:
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
            drawn = drawn_from(self.canvas, slots, logits, self._shaping, self._chance)
            action = Action(commit=Writing.of(slots, drawn.ids))
            action.perform(self.canvas, self._fill)
            self.counters.did(action, self.canvas.step, self.canvas.first)
            self._caching.note(self.canvas, action)

    def _release(self, end: int) -> bool:
        """Let slots before `end` be shown, if no guard minds."""
        if end <= self.canvas.released:
            return True
        for guarding in self._guarding:
            refusal = guarding.review(self.canvas, end)
            if refusal is not None:
                self.refusal = refusal
                self._close("refused", self.canvas.released)
                return False
        self.canvas.released = max(self.canvas.released, end)
        return True

    def _finish(self, finish: Finish, end: int) -> None:
        if not self._release(end):
            return
        self._close(finish, end)
        feed = self._caching.persist(self.canvas, range(0)) if self._plugs.keep else None
        if feed is not None:
            self._owed = (feed, range(0))

    def _close(self, finish: Finish, end: int) -> None:
        canvas = self.canvas
        self.finish, self.end = finish, end
        self.counters.kept = end - canvas.first
        decided = canvas.ours & ~canvas.undecided
        self.counters.discarded = int(decided.sum()) - self.counters.kept
