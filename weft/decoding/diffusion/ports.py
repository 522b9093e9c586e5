"""The ports that decide how a text is written, and `DecoderConfig`, which holds one of each.

Each has settings, which are safe to share, and a session, which `begin` makes for one canvas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.query import PassKind, Query, RefreshCandidates
from weft.decoding.diffusion.stats import ProbeAnswer, SampledTokens, Stats

SessionT_co = TypeVar("SessionT_co", covariant=True)


class Settings(Protocol[SessionT_co]):
    """Settings of one part of a decoder: safe to share."""

    def begin(self, canvas: Canvas, traits: ModelTraits) -> SessionT_co:
        """For one canvas."""


class ForesightSettings(Settings[SessionT_co], Protocol[SessionT_co]):
    """Of a part that may look at predictions behind the window."""

    @property
    def beyond(self) -> bool:
        """Whether it does."""


class GuidanceSession(Protocol):
    """Changes logits."""

    def asks(self, query: Query) -> Query | None:
        """Another query for the same pass, whose answer `guided` gets; None: not needed."""

    def guided(
        self,
        logits: NDArray[np.float32],
        slots: Slots,
        answer: NDArray[np.float32] | None,
        canvas: Canvas,
    ) -> NDArray[np.float32]:
        """New logits [slots, vocabulary]; -inf forbids, and one token of each slot is left."""


class VerifierSession(Protocol):
    """Lets less through than was proposed, or puts something else in its place."""

    passes: int
    """Passes of another model so far, for the counters."""

    def verified(
        self, action: Action, stats: Stats, drawn: SampledTokens, canvas: Canvas
    ) -> Action:
        """What is done instead."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Nothing more is released. `reason` is told whoever asked, and never quotes the text."""

    reason: str


class GuardSession(Protocol):
    """Reviews text before it is shown."""

    def review(self, canvas: Canvas, end: int) -> Refusal | None:
        """Slots before `end` are decided for good, and those from `canvas.released` on are new.

        Looks at prompt and answer as one text.
        """


Need = Literal["decided", "beyond", "distribution"]
"""More than the open slots of the window: its decided slots of ours, the open slots behind it, all
probabilities and how far they are from those of the pass before."""


class CommitSession(Protocol):
    """A policy at work on one canvas, with what it remembers of it."""

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        """What to do after one pass. Depends on the row only.

        An action that changes nothing is replaced by the commit of the surest open slot.
        """


@runtime_checkable
class ProbingSession(CommitSession, Protocol):
    """One that may ask again before it decides."""

    def looked(self, answers: Sequence[ProbeAnswer], canvas: Canvas) -> Action:
        """The answers to `Action.look`, in order. May look again."""


@runtime_checkable
class LogitsAdjustingSession(CommitSession, Protocol):
    """One that changes the logits [slots, vocabulary] before anything is drawn from them."""

    def adjust(
        self, logits: NDArray[np.float32], slots: Slots, canvas: Canvas
    ) -> NDArray[np.float32]:
        """New logits; those given are not written to."""


@runtime_checkable
class ShadowReadingSession(CommitSession, Protocol):
    """One that asks how decided slots are predicted by all the others."""

    def shadows(self, canvas: Canvas) -> Slots:
        """Decided slots of the window, ascending; answered in `Stats.shadow`."""


class CommitPolicy(Settings[CommitSession], Protocol):
    """Which slots are written after a look at the model's predictions."""

    @property
    def needs(self) -> frozenset[Need]:
        """What `Stats` has to hold."""

    def most_forwards(self, slots: int) -> int:
        """Proposals after which so many slots are decided at the latest; from there on, commits
        alone are done, at least one a pass.
        """


@dataclass(frozen=True, slots=True, eq=False)
class CacheFeed:
    """Slots to be read, ascending, and how far is seen; `choice`: more of them, see `Query`."""

    slots: Slots
    reach: int
    kind: PassKind = "denoise"
    choice: RefreshCandidates | None = None


class CacheSession(Protocol):
    """A cache policy at work on one canvas."""

    def plan(self, canvas: Canvas) -> CacheFeed:
        """For the next proposal: reads the slots of the window at least."""

    def note(self, canvas: Canvas, action: Action) -> None:
        """What was done to the canvas, which shows it already."""

    def persist(self, canvas: Canvas, following: range) -> CacheFeed | None:
        """The pass over final tokens that is owed before the window becomes `following`.

        An empty `following` is the end of the text. None: no pass is owed.
        """


class CachePolicy(Settings[CacheSession], Protocol):
    """Which slots are read again in a pass, and which are trusted. `begin` raises
    `CapabilityError` for a model that it cannot serve.
    """

    @property
    def exact(self) -> bool:
        """Whether predictions are what they would be without it."""

    @property
    def predicts(self) -> bool:
        """Whether the pass over a finished block also writes the first slot of the next one."""


class ScheduleSession(Protocol):
    """A schedule at work on one canvas, which it may grow."""

    def first(self, canvas: Canvas) -> range:
        """The first window; empty: there is nothing to write."""

    def following(self, canvas: Canvas, stats: Stats | None) -> range:
        """The window after the one whose slots are all decided; empty: the text is full."""


@runtime_checkable
class MovingScheduleSession(ScheduleSession, Protocol):
    """A schedule that moves its window, or grows the canvas, by the predictions of each pass."""

    def moved(self, canvas: Canvas, stats: Stats) -> range:
        """The window from now on; asked after each pass over it, before anything is proposed.

        Where slots came or went, nothing is proposed before they are predicted.
        """


class StopSession(Protocol):
    """A stop policy at work on one canvas."""

    def ended(self, canvas: Canvas, stats: Stats) -> int | None:
        """The slot of the terminator, when all before it is decided; None: write on.

        May trim what can no longer matter.
        """


GuidancePolicy: TypeAlias = Settings[GuidanceSession]
OutputGuard: TypeAlias = Settings[GuardSession]
VerifierPolicy: TypeAlias = ForesightSettings[VerifierSession]
BlockSchedule: TypeAlias = ForesightSettings[ScheduleSession]
StopPolicy: TypeAlias = ForesightSettings[StopSession]


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """Settings only: safe to share.

    fresh  what is drawn for a slot changes from step to step
    keep   the keys of the whole text are stored when it ends, for who reads on from there
    """

    commit: CommitPolicy
    schedule: BlockSchedule
    cache: CachePolicy
    stop: StopPolicy
    guidance: tuple[GuidancePolicy, ...] = ()
    verifiers: tuple[VerifierPolicy, ...] = ()
    guards: tuple[OutputGuard, ...] = ()
    fresh: bool = False
    keep: bool = False
