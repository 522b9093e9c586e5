"""The drafts of one sequence: requested, walked, settled and counted.

When a drafter fails, the sequence continues with plain decoding.
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
    """Passes of the target after the prompt (`forwards`), and `tokens` that they committed.

    `drafted` nodes were read, `tried` of them tested, `accepted` kept. At depth d + 1, `tested[d]`
    steps tested a candidate, and `held[d]` of them accepted it.
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
        """Committed tokens for each pass; 1 without drafts."""
        return self.tokens / self.forwards if self.forwards else 0.0

    @property
    def chances(self) -> tuple[float, ...]:
        """By depth: the share of the steps that tested a candidate and accepted it."""
        return tuple(h / t if t else 0.0 for h, t in zip(self.held, self.tested, strict=True))

    def step(self, drafted: int, deepest: int, tried: int, accepted: int, tokens: int) -> None:
        """Count one pass: a draft of `drafted` nodes down to `deepest`, and its result."""
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
    """The drafter failed: from here on the sequence is decoded plainly."""

    method: str
    reason: str


NO_DRAFT = DraftProposal()
MOST_NODES = 256


class SpeculativeSequence:
    """One sequence of `method`, for a target with `vocabulary` tokens.

    Call `extend` with the prompt; then for every step `ask`, `take`, `walk` and `settle`; finally
    `end`. `fallback` is set when the drafter failed, and passed to `on_fallback` at once.
    """

    def __init__(
        self,
        method: SpeculativeMethod,
        vocabulary: int,
        request: DraftRequest = UNKNOWN_REQUEST,
        on_fallback: Callable[[SpeculationFallback], None] = lambda _fallback: None,
    ) -> None:
        self.method = method
        self.counters = SpeculativeCounters()
        self.fallback: SpeculationFallback | None = None
        self._vocabulary = vocabulary
        self._on_fallback = on_fallback
        self._drafter: Drafter | None = None
        try:
            self._drafter = method.begin(request)
        except Exception as error:  # noqa: BLE001 - a failed draft must not fail the request
            self._give_up(error)

    @property
    def taps(self) -> tuple[int, ...]:
        """The layers of the target whose states the drafter needs."""
        return self._drafter.taps if isinstance(self._drafter, TargetObserver) else ()

    @property
    def lossless(self) -> bool:
        """Whether the text equals that of plain decoding."""
        return not isinstance(self.method.acceptor, LossyAcceptor)

    @property
    def watches(self) -> bool:
        """Whether the drafter observes the target's passes."""
        return isinstance(self._drafter, TargetObserver)

    def extend(self, tokens: Sequence[int]) -> None:
        """Append `tokens` to the sequence, if any."""
        if self._drafter is not None and tokens:
            try:
                self._drafter.extend(tokens)
            except Exception as error:  # noqa: BLE001 - a failed draft must not fail the request
                self._give_up(error)

    def see(self, outputs: TargetOutputs) -> None:
        """Pass on the outputs of the target; comes before `extend` with the resulting tokens."""
        if isinstance(self._drafter, TargetObserver):
            try:
                self._drafter.see(outputs)
            except Exception as error:  # noqa: BLE001 - a failed draft must not fail the request
                self._give_up(error)

    def ask(self) -> ProposalRequest | None:
        """The request to the method, if there is one."""
        return (
            None if self._drafter is None else (self._drafter, min(self.method.nodes, MOST_NODES))
        )

    def take(
        self, proposed: DraftProposal | BaseException, ask: ProposalRequest, room: int
    ) -> DraftProposal:
        """The draft to verify, at most `room` tokens with the target's own."""
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
        """The path of `draft` that the method's rule accepts."""
        acceptor = self.method.acceptor
        if isinstance(acceptor, LossyAcceptor):
            return acceptor.walk_lossy(draft.tree, distribution_at, rng, position)
        return acceptor.walk(draft.tree, distribution_at, rng, position)

    def settle(self, draft: DraftProposal, walk: AcceptedPath, tokens: Sequence[int]) -> None:
        """Commit `tokens` of the walk: all of them, or those up to the end of the text.

        Forced tokens are committed by `extend` alone.
        """
        accepted, deepest = min(len(walk.path), len(tokens)), int(draft.tree.depths.max())
        self.counters.step(len(draft.tree), deepest, walk.tried, accepted, len(tokens))
        self.extend(tokens)

    def end(self) -> None:
        """Release the drafter; may be repeated."""
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
