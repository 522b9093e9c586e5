"""The ports of a diffusion decoder, and `DecoderConfig`, which combines one of each.

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


class PartSettings(Protocol[SessionT_co]):
    """Settings of one part of a decoder: safe to share."""

    def begin(self, canvas: Canvas, traits: ModelTraits) -> SessionT_co:
        """A session for one canvas."""


class ForesightSettings(PartSettings[SessionT_co], Protocol[SessionT_co]):
    """Settings of a part that may read predictions behind the window."""

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
        """New logits [slots, vocabulary]; -inf forbids a token, but never all of a slot."""


class VerifierSession(Protocol):
    """Removes or replaces commits of proposed actions."""

    passes: int
    """Passes of another model so far, for the counters."""

    def verified(
        self, action: Action, stats: Stats, drawn: SampledTokens, canvas: Canvas
    ) -> Action:
        """The action to perform instead."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The end of all releases. The client receives `reason`, which never quotes the text."""

    reason: str


class GuardSession(Protocol):
    """Reviews text before it is shown."""

    def review(self, canvas: Canvas, end: int) -> Refusal | None:
        """Slots before `end` are final, and those from `canvas.released` on are new.

        Judges prompt and answer as one text.
        """


Need = Literal["decided", "beyond", "distribution"]
"""Statistics beyond the open slots of the window: its decided slots, open slots behind it, all
probabilities and their divergence from the pass before."""


class CommitSession(Protocol):
    """A commit policy at work on one canvas, with its state."""

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        """The action after one pass. Depends on the row only.

        An action that changes nothing is replaced by the commit of the surest open slot.
        """


@runtime_checkable
class ProbingSession(CommitSession, Protocol):
    """A session that may send probe queries before it decides."""

    def probed(self, answers: Sequence[ProbeAnswer], canvas: Canvas) -> Action:
        """The action after the answers to `Action.probes`, in order; may probe again."""


@runtime_checkable
class LogitsAdjustingSession(CommitSession, Protocol):
    """A session that changes the logits [slots, vocabulary] before tokens are sampled."""

    def adjust(
        self, logits: NDArray[np.float32], slots: Slots, canvas: Canvas
    ) -> NDArray[np.float32]:
        """New logits; the argument is not written to."""


@runtime_checkable
class ShadowReadingSession(CommitSession, Protocol):
    """A session that asks how decided slots are predicted by all the others."""

    def shadows(self, canvas: Canvas) -> Slots:
        """Decided slots of the window, ascending; answered in `Stats.shadow`."""


class CommitPolicy(PartSettings[CommitSession], Protocol):
    """The rule that chooses which slots are written after a pass."""

    @property
    def needs(self) -> frozenset[Need]:
        """Statistics that `Stats` must contain."""

    def most_forwards(self, slots: int) -> int:
        """Bound on the proposals for `slots` open slots; after it actions only commit."""


@dataclass(frozen=True, slots=True, eq=False)
class CacheFeed:
    """Slots to read, ascending, and how far they see; `choice`: more slots, see `Query`."""

    slots: Slots
    reach: int
    kind: PassKind = "denoise"
    choice: RefreshCandidates | None = None


class CacheSession(Protocol):
    """A cache policy at work on one canvas."""

    def plan(self, canvas: Canvas) -> CacheFeed:
        """The feed of the next proposal: at least the slots of the window."""

    def note(self, canvas: Canvas, action: Action) -> None:
        """Note an action after it was applied to the canvas."""

    def persist(self, canvas: Canvas, following: range) -> CacheFeed | None:
        """The pass over final tokens before the window becomes `following`; None: none is due.

        An empty `following` is the end of the text.
        """


class CachePolicy(PartSettings[CacheSession], Protocol):
    """The rule for which slots are read again in a pass; others are reused. `begin` raises
    `CapabilityError` for a model that it cannot serve.
    """

    @property
    def exact(self) -> bool:
        """Whether predictions are the same as without a cache."""

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
        """The window from now on; called after each pass over it, before a proposal.

        Slots that it adds are predicted before the next proposal.
        """


class StopSession(Protocol):
    """A stop policy at work on one canvas."""

    def ended(self, canvas: Canvas, stats: Stats) -> int | None:
        """The slot of the terminator, when all slots before it are decided; else None.

        May trim slots that no longer matter.
        """


GuidancePolicy: TypeAlias = PartSettings[GuidanceSession]
OutputGuard: TypeAlias = PartSettings[GuardSession]
VerifierPolicy: TypeAlias = ForesightSettings[VerifierSession]
BlockSchedule: TypeAlias = ForesightSettings[ScheduleSession]
StopPolicy: TypeAlias = ForesightSettings[StopSession]


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """Settings of a decoder: safe to share.

    fresh  a slot is sampled with a new random number in every step
    keep   the keys of the whole text are stored when it ends, for a text that continues it
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
