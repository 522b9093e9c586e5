"""Drafting during verification: PEARL (arXiv 2408.11850), continuously.

A draft model works in its own thread, on the assumption that all tokens under verification will be
accepted. Tokens of wrong assumptions are discarded and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from weft.decoding.speculative.draft import DraftProposal, DraftTree
from weft.decoding.speculative.drafter import (
    UNKNOWN_REQUEST,
    Drafter,
    DraftRequest,
    MethodDrafter,
    ProposalRequest,
    SpeculativeMethod,
)
from weft.decoding.speculative.drafters.model.draft_cache import (
    DraftCache,
    DraftCacheMethod,
    DraftedToken,
    DraftSequence,
)
from weft.decoding.speculative.drafters.model.draft_model import (
    DraftChain,
    GreedyChoice,
    grow_chains,
)


class PipelinedDrafter(MethodDrafter):
    """Implements `Drafter`: one sequence of a pipelined method.

    `ahead` is expected to follow the text: tokens under verification, then those drafted meanwhile.
    New text is buffered while the draft model reads the sequence.
    """

    def __init__(self, method: SpeculativeMethod, line: DraftSequence) -> None:
        super().__init__(method)
        self.line = line
        self.ahead: list[DraftedToken] = []
        self.growing: Sequence[DraftedToken] = ()
        """Tokens being drafted after `ahead`, so far."""
        self.offered = 0
        """How many of `ahead` are under verification."""
        self.missed = False
        """Whether the text differs from the expected one, so that the current draft is useless."""
        self.misses = 0
        """Rounds in a row with a miss."""
        self.ended = False
        self._buffered: list[int] = []

    def extend(self, tokens: Sequence[int]) -> None:
        before = len(self._buffered)
        self._buffered += tokens
        drafted = [*self.ahead, *self.growing][before : before + len(tokens)]
        expected = [chosen.token for chosen in drafted]
        self.missed |= expected != list(tokens[: len(expected)])

    def settle(self) -> VerifyResult:
        """Compare expected and written tokens while the draft model is idle.

        After the end of the sequence nothing is expected.
        """
        matched = 0
        for chosen, token in zip(self.ahead, self._buffered, strict=False):
            if chosen.token != token:
                break
            matched += 1
        offered, rest = self.ahead[: self.offered], self.ahead[matched:]
        wrong = matched < len(self._buffered) and bool(rest)
        lost = rest if wrong or self.ended else []
        self.ahead = [] if wrong or self.ended else rest
        self.misses = self.misses + 1 if wrong else 0
        self.line.extend(self._buffered)
        written, self._buffered = tuple(self._buffered), []
        self.offered, self.missed = 0, False
        return VerifyResult(written, tuple(offered), min(matched, len(offered)), tuple(lost))


@dataclass(frozen=True, slots=True, eq=False)
class VerifyResult:
    """The result of a round: the first `accepted` tokens of `offered` were `written`, with others.

    `lost` are the expected tokens that were discarded: rejected ones, then unread ones.
    """

    written: tuple[int, ...]
    offered: tuple[DraftedToken, ...]
    accepted: int
    lost: tuple[DraftedToken, ...]

    @property
    def thrown_away(self) -> int:
        """Number of lost tokens that the target never read."""
        return max(0, len(self.lost) - (len(self.offered) - self.accepted))


_MEMORY: Final = 8.0
"""The window of a running mean, in measurements."""


class AdaptiveGamma:
    """The number of tokens drafted during one pass of the target (PEARL, arXiv 2408.11850): the
    target's time over the draft's, rounded, so that neither waits for the other.

    From 1 to `longest`; `start` until both are measured, and without `adaptive`. `now` returns
    seconds.
    """

    def __init__(
        self, start: int, longest: int, now: Callable[[], float], *, adaptive: bool = True
    ) -> None:
        self._start = min(start, longest)
        self._longest = longest
        self._now = now
        self._adaptive = adaptive
        self._target = _Mean()
        self._draft = _Mean()
        self._began: float | None = None

    @property
    def length(self) -> int:
        """Tokens for the next round."""
        if not self._adaptive or not self._target.value or not self._draft.value:
            return self._start
        return max(1, min(self._longest, round(self._target.value / self._draft.value)))

    def target_begins(self) -> None:
        """Note that the target has its draft."""
        self._began = self._now()

    def target_ended(self) -> None:
        """Note that the target requests the next draft."""
        if self._began is not None:
            self._target.add(self._now() - self._began)
            self._began = None

    def interrupted(self) -> None:
        """Drop the current measurement: more than one pass follows."""
        self._began = None

    def drafted(self, tokens: int, seconds: float) -> None:
        """Note that the draft model wrote so many tokens in so many seconds."""
        if tokens:
            self._draft.add(seconds / tokens)


class _Mean:
    """An exponential moving average."""

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, measured: float) -> None:
        rate = 1.0 / _MEMORY if self.value else 1.0
        self.value += rate * (measured - self.value)


class DraftWorker(Protocol):
    """Runs one piece of work after the other."""

    def start(self, work: Callable[[], None]) -> Future[None]:
        """Start `work`; its error is raised by the future's `result`."""

    def close(self) -> None:
        """Wait for running work, and start no more."""


class ThreadWorker:
    """Implements `DraftWorker` with one thread, which ends with `close` or the interpreter."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)

    def start(self, work: Callable[[], None]) -> Future[None]:
        return self._pool.submit(work)

    def close(self) -> None:
        self._pool.shutdown()


class InlineWorker:
    """Implements `DraftWorker` without a thread: `start` does the work."""

    def start(self, work: Callable[[], None]) -> Future[None]:
        done: Future[None] = Future()
        try:
            work()
        except Exception as error:  # noqa: BLE001 - raised by the future's `result`
            done.set_exception(error)
        else:
            done.set_result(None)
        return done

    def close(self) -> None:
        """Does nothing."""


_FEW: Final = 16
"""So many tokens take a pass about as long as one."""


class DraftPacing(Protocol):
    """How far and how long to draft during a pass of the target."""

    @property
    def waits(self) -> bool:
        """Whether a round lasts until its draft is complete; else until the target's pass ends."""

    def most(self, gamma: int) -> int:
        """The most tokens of a round, when `gamma` fill the time of a pass."""

    def goes_on(self, ahead: int, chosen: Sequence[DraftedToken], misses: int) -> bool:
        """Whether to draft on after `ahead` tokens and those chosen after them in this round.

        `misses`: rounds in a row with a miss.
        """


class PipelinedMethod(DraftCacheMethod):
    """Implements `SpeculativeMethod`. `propose` ends a round and begins the next.

    At the end the draft model becomes idle, and its expected tokens are compared with the written
    ones. At the beginning the tokens that still match are proposed, and `worker` drafts on after
    them. The worker uses the network of `cache` during a round, the caller between rounds. Drafts
    are the likeliest tokens, verified by `ExactMatch`: the timing never changes the text.
    """

    def __init__(
        self,
        name: str,
        cache: DraftCache,
        worker: DraftWorker,
        gamma: AdaptiveGamma,
        pacing: DraftPacing,
        now: Callable[[], float],
        longest: int,
    ) -> None:
        super().__init__(name, cache, longest)
        self.thrown_away = 0
        """Drafted tokens that the target never read."""
        self._worker = worker
        self._gamma = gamma
        self._pacing = pacing
        self._now = now
        self._choice = GreedyChoice()
        self._running: Future[None] | None = None
        self._rounds: list[tuple[PipelinedDrafter, DraftChain]] = []
        self._closing = False
        self._hurry = False

    def begin(self, request: DraftRequest = UNKNOWN_REQUEST) -> Drafter:  # noqa: ARG002
        return PipelinedDrafter(self, self.cache.open())

    def propose(self, asks: Sequence[ProposalRequest]) -> Sequence[DraftProposal | BaseException]:
        own = [(drafter, most) for drafter, most in asks if isinstance(drafter, PipelinedDrafter)]
        self._gamma.target_ended()
        self._finish_round()
        for drafter, _ in own:
            self._settle(drafter)
        trees = self.offer(own)
        self._begin_round(own)
        self._gamma.target_begins()
        return [DraftProposal(tree, source=self.name) for tree in trees]

    def end(self, drafter: Drafter) -> None:
        if isinstance(drafter, PipelinedDrafter):
            drafter.ended = True  # its chain grows no more
            self._gamma.interrupted()
            if all(busy is not drafter for busy, _ in self._rounds):
                self._release(drafter)

    def close(self) -> None:
        self._closing = True
        self._worker.close()
        with suppress(Exception):  # no caller is left for errors
            self._finish_round()

    def offer(self, asks: Sequence[tuple[PipelinedDrafter, int]]) -> Sequence[DraftTree]:
        """The trees for the target. The draft model is idle."""
        for drafter, most in asks:
            drafter.offered = min(most, len(drafter.ahead))
        return [
            DraftTree.chain([chosen.token for chosen in drafter.ahead[: drafter.offered]])
            for drafter, _ in asks
        ]

    def settled(self, drafter: PipelinedDrafter, settled: VerifyResult) -> None:
        """Hook for methods that learn from the result of a round."""

    def _settle(self, drafter: PipelinedDrafter) -> None:
        settled = drafter.settle()
        self.discard(settled.lost)
        self.thrown_away += settled.thrown_away
        self.settled(drafter, settled)

    def _begin_round(self, asks: Sequence[tuple[PipelinedDrafter, int]]) -> None:
        gamma = self._pacing.most(self._gamma.length)
        self._rounds = []
        for drafter, most in asks:
            # no gain beyond one full draft and one round
            room = min(gamma, most + gamma - len(drafter.ahead)) if most else 0
            ahead = tuple(chosen.token for chosen in drafter.ahead)
            rule = self._rule(drafter, len(ahead))
            chain = DraftChain(drafter.line, self._choice, room, ahead, rule)
            drafter.growing = chain.chosen
            self._rounds.append((drafter, chain))
        self._hurry = False
        chains = [chain for _, chain in self._rounds]
        self._running = self._worker.start(lambda: self._draft(chains))

    def _rule(
        self, drafter: PipelinedDrafter, ahead: int
    ) -> Callable[[Sequence[DraftedToken]], bool]:
        def goes_on(chosen: Sequence[DraftedToken]) -> bool:
            if self._closing or drafter.ended:
                return False
            if not self._pacing.waits and (self._hurry or drafter.missed):
                return False
            return self._pacing.goes_on(ahead, chosen, drafter.misses)

        return goes_on

    def _draft(self, chains: Sequence[DraftChain]) -> None:
        """The work of a round, on the worker."""
        steady = all(
            len(chain.line.unread(chain.ahead)[1]) <= _FEW for chain in chains if chain.most
        )
        before, began = self.cache.forwards, self._now()
        grow_chains(self.cache, chains)
        if steady:  # a pass over a prompt does not measure one over a token
            self._gamma.drafted(self.cache.forwards - before, self._now() - began)

    def _finish_round(self) -> None:
        """Wait until the draft model is idle, and take its tokens."""
        running, self._running = self._running, None
        if running is None:
            return
        self._hurry = True
        rounds, self._rounds = self._rounds, []
        try:
            running.result()
        finally:
            for drafter, chain in rounds:
                drafter.ahead += chain.chosen
                drafter.growing = ()
                if drafter.ended:
                    self._release(drafter)

    def _release(self, drafter: PipelinedDrafter) -> None:
        self._settle(drafter)
        self.cache.close(drafter.line)
