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
from weft.decoding.diffusion.allowing import Allowing
from weft.decoding.diffusion.cache import Feed
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.counters import Counters
from weft.decoding.diffusion.filters import Refusal
from weft.decoding.diffusion.plugs import Plugs
from weft.decoding.diffusion.policy import Looking
from weft.decoding.diffusion.predicting import Predicting
from weft.decoding.diffusion.query import Logits, Query
from weft.decoding.diffusion.releasing import Releasing
from weft.decoding.diffusion.schedule import Moving
from weft.decoding.diffusion.stats import Drawn, Stats
from weft.decoding.speculative.chance import Chance
from weft.decoding.speculative.law import Shaping

Finish = Literal["stop", "length", "refused"]
_NOISE_ID: Final = 0
"""What an opened slot holds where the model has no mask."""


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
        self._plugs = plugs
        self._blocks = plugs.schedule.begin(canvas, traits)
        canvas.window = self._blocks.first(canvas)
        self._commits = commits = plugs.commit.begin(canvas, traits)
        self._looking = commits if isinstance(commits, Looking) else None
        self._caching = caching = plugs.cache.begin(canvas, traits)
        self._stopping = plugs.stop.begin(canvas, traits)
        self._predicting = Predicting(canvas, plugs, traits, commits, caching, chance, shaping)
        self._allowing = Allowing(canvas, plugs, traits, self.counters)
        self._releasing = Releasing(canvas, plugs, traits)
        self._fill = _NOISE_ID if traits.mask_id is None else traits.mask_id
        self._looks: tuple[Query, ...] = ()
        self._pending: tuple[Stats, Drawn] | None = None
        self._owed: tuple[Feed, range] | None = None
        if not canvas.window:
            self._finish("length", canvas.length)
            return
        self._allowing.bounded()
        if not len(canvas.open):
            self._leave(None)

    @property
    def over(self) -> bool:
        return self.finish is not None and self._owed is None

    @property
    def refusal(self) -> Refusal | None:
        return self._releasing.refusal

    @property
    def kept(self) -> NDArray[np.int64]:
        """The answer so far, or as it is: up to `end` when it is over, else what is released."""
        end = self.canvas.released if self.finish is None else self.end
        return self.canvas.ids[self.canvas.first : end]

    def queries(self) -> tuple[Query, ...]:
        """What to ask in the next pass, one query at least."""
        if self._owed is not None:
            asked: tuple[Query, ...] = (self._persisting(*self._owed),)
        else:
            asked = self._looks or self._predicting.queries()
        self.counters.passed(asked, asked[0].kind)
        return asked

    def settle(self, answers: Sequence[Logits]) -> None:
        """Take what came of `queries`, in their order."""
        if self._owed is not None:
            self._persisted(answers[0])
        elif self._looks:
            assert self._looking is not None
            pairs = zip(self._looks, answers, strict=True)
            looked = [self._predicting.answer(*one) for one in pairs]
            self._do(self._looking.looked(looked, self.canvas))
        else:
            self.settle_seen(*self._predicting.seen(answers))

    @property
    def wants_statistics(self) -> bool:
        """Whether nobody wants the logits of the next pass, so that `settle_seen` can be called."""
        return not (self._owed or self._looks or self._predicting.wants_logits)

    def settle_seen(self, stats: Stats, drawn: Drawn) -> None:
        """As `settle`, with what was computed elsewhere from the logits that were wanted."""
        if self._stays(stats):
            self._pending = stats.within(self.canvas), drawn
            self._do(self._commits.propose(*self._pending, self.canvas))

    # --- one proposal

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
        self._predicting.forget()
        self._allowing.bounded()
        return False

    def _do(self, action: Action) -> None:
        """Carry out a proposal, unless it wants another look first."""
        self._looks = action.look
        if action.look:
            return
        assert self._pending is not None
        stats, drawn = self._pending
        action = self._allowing.allowed(action, stats, drawn)
        self._perform(action)
        self._predicting.soft = action.soft
        self.canvas.step += 1
        self.canvas.step_in_block += 1
        self._advance(stats, action)

    def _perform(self, action: Action) -> None:
        canvas = self.canvas
        action.perform(canvas, self._fill)
        self.counters.did(action, canvas.step, canvas.first)
        self._caching.note(canvas, action)

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
        self._predicting.forget()
        self._allowing.bounded()
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
            drawn = self._predicting.drawn(slots, logits)
            self._perform(Action(commit=Writing.of(slots, drawn.ids)))

    # --- the end

    def _release(self, end: int) -> bool:
        """Let slots before `end` be shown; where a guard minds, that is the end."""
        if self._releasing.release(end):
            return True
        self._close("refused", self.canvas.released)
        return False

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
