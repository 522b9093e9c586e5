"""The drafts of one sequence: asked for, walked, settled, counted.

A drafter that fails is left behind, and the sequence goes on plainly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from weft.decoding.sampling import TokenRng
from weft.decoding.speculative.acceptance import AcceptedPath, DistributionAt, LossyAcceptor
from weft.decoding.speculative.draft import DraftProposal
from weft.decoding.speculative.drafter import (
    UNKNOWN_REQUEST,
    Drafter,
    DraftRequest,
    ProposalRequest,
    SpeculativeMethod,
    TargetObserver,
    TargetOutputs,
)


@dataclass(slots=True)
class SpeculativeCounters:
    """`forwards` of the target, after the prompt; `tokens` that they committed.

    `drafted` nodes were read, `tried` of them looked at, `accepted` kept. `tested[d]` candidates
    stood at depth d + 1 below accepted ones only, and `held[d]` of these steps went on there.
    """

    tokens: int = 0
    forwards: int = 0
    drafted: int = 0
    tried: int = 0
    accepted: int = 0
    tested: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)

    @property
    def tokens_per_forward(self) -> float:
        """1 without drafts."""
        return self.tokens / self.forwards if self.forwards else 0.0

    @property
    def chances(self) -> tuple[float, ...]:
        """By depth: how often a step that drafted there went on, of those that came there."""
        return tuple(h / t if t else 0.0 for h, t in zip(self.held, self.tested, strict=True))

    def step(self, drafted: int, deepest: int, tried: int, accepted: int, tokens: int) -> None:
        """One forward: a draft of `drafted` nodes down to `deepest`, and what came of it."""
        self.forwards += 1
        self.drafted += drafted
        self.tried += tried
        self.accepted += accepted
        self.tokens += tokens
        while len(self.tested) < deepest:
            self.tested.append(0)
            self.held.append(0)
        for depth in range(min(accepted + 1, deepest)):
            self.tested[depth] += 1
            self.held[depth] += depth < accepted


@dataclass(frozen=True, slots=True)
class SpeculationFallback:
    """From here on the sequence is decoded plainly: its drafter failed."""

    method: str
    reason: str


NO_DRAFT = DraftProposal()
MOST_NODES = 256


class SpeculativeSequence:
    """One sequence of `method`, over a target that knows `vocabulary` tokens.

    The order of calls: `extend` with the prompt; then of every step `ask`, `take`, `walk`,
    `settle`; `end` at last. `fallback` says why it drafts no more; `on_fallback` is told it at
    once.
    """

    def __init__(
        self,
        method: SpeculativeMethod,
        vocabulary: int,
        asked: DraftRequest = UNKNOWN_REQUEST,
        on_fallback: Callable[[SpeculationFallback], None] = lambda _fallback: None,
    ) -> None:
        self.method = method
        self.counters = SpeculativeCounters()
        self.fallback: SpeculationFallback | None = None
        self._vocabulary = vocabulary
        self._on_fallback = on_fallback
        self._drafter: Drafter | None = None
        try:
            self._drafter = method.begin(asked)
        except Exception as error:  # noqa: BLE001 - a draft is worth no request
            self._give_up(error)

    @property
    def taps(self) -> tuple[int, ...]:
        """The layers of the target that the drafter looks at."""
        return self._drafter.taps if isinstance(self._drafter, TargetObserver) else ()

    @property
    def lossless(self) -> bool:
        """Whether the text is that of plain decoding."""
        return not isinstance(self.method.acceptor, LossyAcceptor)

    @property
    def watches(self) -> bool:
        """Whether the drafter wants to see passes."""
        return isinstance(self._drafter, TargetObserver)

    def extend(self, tokens: Sequence[int]) -> None:
        """The sequence goes on with `tokens`; of none the drafter is not told."""
        if self._drafter is not None and tokens:
            try:
                self._drafter.extend(tokens)
            except Exception as error:  # noqa: BLE001 - a draft is worth no request
                self._give_up(error)

    def see(self, seen: TargetOutputs) -> None:
        """The target has read what `seen` says. Comes before `extend` with what came of it."""
        if isinstance(self._drafter, TargetObserver):
            try:
                self._drafter.see(seen)
            except Exception as error:  # noqa: BLE001 - a draft is worth no request
                self._give_up(error)

    def ask(self) -> ProposalRequest | None:
        """What to ask the method for now; None: nothing."""
        return (
            None if self._drafter is None else (self._drafter, min(self.method.nodes, MOST_NODES))
        )

    def take(
        self, proposed: DraftProposal | BaseException, ask: ProposalRequest, room: int
    ) -> DraftProposal:
        """The draft to read, where `room` tokens may still be written."""
        if isinstance(proposed, BaseException):
            self._give_up(proposed)
            return NO_DRAFT
        tree = proposed.tree
        if len(tree) > ask[1]:
            self._give_up(ValueError(f"a draft of {len(tree)} nodes where {ask[1]} were asked for"))
            return NO_DRAFT
        strange = [t for t in (*tree.tokens, *proposed.aux.tokens) if not t < self._vocabulary]
        if strange:
            self._give_up(ValueError(f"token {strange[0]} is outside of {self._vocabulary}"))
            return NO_DRAFT
        return proposed.clipped(room - 1)  # the target's own token comes after it

    def walk(
        self, draft: DraftProposal, distribution_at: DistributionAt, rng: TokenRng, position: int
    ) -> AcceptedPath:
        """What of `draft` is accepted, by the method's rule."""
        acceptor = self.method.acceptor
        if isinstance(acceptor, LossyAcceptor):
            return acceptor.walk_lossy(draft.tree, distribution_at, rng, position)
        return acceptor.walk(draft.tree, distribution_at, rng, position)

    def settle(self, draft: DraftProposal, walk: AcceptedPath, tokens: Sequence[int]) -> None:
        """`tokens` of the walk were committed: all of them, or those up to the end of the text.

        What else is committed, because it was forced, is told by `extend` only.
        """
        accepted, deepest = min(len(walk.path), len(tokens)), int(draft.tree.depths.max())
        self.counters.step(len(draft.tree), deepest, walk.tried, accepted, len(tokens))
        self.extend(tokens)

    def end(self) -> None:
        """Let go of the drafter. Harmless when repeated."""
        drafter, self._drafter = self._drafter, None
        if drafter is not None:
            try:
                self.method.end(drafter)
            except Exception as error:  # noqa: BLE001 - the text is written already
                self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        if self.fallback is None:
            reason = f"{type(error).__name__}: {error}"[:300]
            self.fallback = SpeculationFallback(self.method.name, reason)
            self._on_fallback(self.fallback)
        self.end()
