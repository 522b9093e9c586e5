"""Drafts that go on while the target verifies: PEARL (arXiv 2408.11850), continuously.

A draft model works in a thread of its own from the assumption that all that is being verified will
be accepted. What turns out otherwise is thrown away, and counted.
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

    `ahead` is expected to follow the text: what is being verified, then what was drafted
    meanwhile. Tokens of the text are kept back until the draft model is at rest: its line is not to
    be touched while it reads.
    """

    def __init__(self, method: SpeculativeMethod, line: DraftSequence) -> None:
        super().__init__(method)
        self.line = line
        self.ahead: list[DraftedToken] = []
        self.growing: Sequence[DraftedToken] = ()
        """What is being drafted behind that now, as far as it is."""
        self.offered = 0
        """How many of `ahead` are being verified."""
        self.missed = False
        """Whether the text went on otherwise than expected: what is being drafted is in vain."""
        self.misses = 0
        """Rounds in a row in which it was so."""
        self.ended = False
        self._news: list[int] = []

    def extend(self, tokens: Sequence[int]) -> None:
        seen = len(self._news)
        self._news += tokens
        known = [*self.ahead, *self.growing][seen : seen + len(tokens)]
        expected = [chosen.token for chosen in known]
        self.missed |= expected != list(tokens[: len(expected)])

    def settle(self) -> VerifyResult:
        """The draft model is at rest: compare what was expected with what was written.

        Where the sequence has ended, nothing is expected any more.
        """
        held = 0
        for chosen, token in zip(self.ahead, self._news, strict=False):
            if chosen.token != token:
                break
            held += 1
        offered, rest = self.ahead[: self.offered], self.ahead[held:]
        wrong = held < len(self._news) and bool(rest)
        lost = rest if wrong or self.ended else []
        self.ahead = [] if wrong or self.ended else rest
        self.misses = self.misses + 1 if wrong else 0
        self.line.extend(self._news)
        written, self._news = tuple(self._news), []
        self.offered, self.missed = 0, False
        return VerifyResult(written, tuple(offered), min(held, len(offered)), tuple(lost))


@dataclass(frozen=True, slots=True, eq=False)
class VerifyResult:
    """What came of `offered`: its first `accepted` tokens were written, of all that was `written`.

    `lost` are the expected tokens that came to nothing: what the target read in vain, then what it
    never read.
    """

    written: tuple[int, ...]
    offered: tuple[DraftedToken, ...]
    accepted: int
    lost: tuple[DraftedToken, ...]

    @property
    def thrown_away(self) -> int:
        """Lost tokens that the target never read."""
        return max(0, len(self.lost) - (len(self.offered) - self.accepted))


_MEMORY: Final = 8.0
"""How many measurements a running mean remembers."""


class AdaptiveGamma:
    """How many tokens are drafted during one pass of the target (PEARL, arXiv 2408.11850): the
    target's time over the draft's, rounded: neither then waits for the other.

    At least 1, at most `longest`; `start` until both were measured. With `adaptive` off it stays
    there. `now` tells seconds.
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
        """The target was given its draft."""
        self._began = self._now()

    def target_ended(self) -> None:
        """The target wants the next draft."""
        if self._began is not None:
            self._target.add(self._now() - self._began)
            self._began = None

    def interrupted(self) -> None:
        """What goes on now is no single pass of the target."""
        self._began = None

    def drafted(self, tokens: int, seconds: float) -> None:
        """The draft model wrote so many tokens within so long a time."""
        if tokens:
            self._draft.add(seconds / tokens)


class _Mean:
    """A running mean that forgets."""

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, measured: float) -> None:
        rate = 1.0 / _MEMORY if self.value else 1.0
        self.value += rate * (measured - self.value)


class DraftWorker(Protocol):
    """Does one piece of work after the other."""

    def start(self, work: Callable[[], None]) -> Future[None]:
        """Begin `work`; what it raises is told by the future's `result`."""

    def close(self) -> None:
        """Wait for what was begun, and begin no more."""


class ThreadWorker:
    """Implements `DraftWorker` with one thread, which ends with `close` or the interpreter."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)

    def start(self, work: Callable[[], None]) -> Future[None]:
        return self._pool.submit(work)

    def close(self) -> None:
        self._pool.shutdown()


class InlineWorker:
    """Implements `DraftWorker` without a thread: work is done when it is begun."""

    def start(self, work: Callable[[], None]) -> Future[None]:
        done: Future[None] = Future()
        try:
            work()
        except Exception as error:  # noqa: BLE001 - told to who asks for the result
            done.set_exception(error)
        else:
            done.set_result(None)
        return done

    def close(self) -> None:
        """Nothing is under way."""


_FEW: Final = 16
"""Tokens that a pass reads in about the time of one."""


class DraftPacing(Protocol):
    """How far and how long to draft while the target is busy."""

    @property
    def waits(self) -> bool:
        """Whether a round lasts until its draft is complete, or ends with the target's pass."""

    def most(self, gamma: int) -> int:
        """Tokens of a round, where `gamma` fill the time of a pass."""

    def goes_on(self, ahead: int, chosen: Sequence[DraftedToken], misses: int) -> bool:
        """Whether to draft on after `ahead` tokens and what was chosen behind them in this round.

        `misses`: of so many rounds in a row the text went on otherwise.
        """


class PipelinedMethod(DraftCacheMethod):
    """Implements `SpeculativeMethod`. `propose` ends a round and begins the next.

    The end: the draft model comes to rest, and what was drafted while the target verified is held
    against what it wrote. The beginning: what still holds is proposed, and the draft model goes on
    behind it in `worker`. The network of `cache` is used by the worker while a round lasts, and
    else by who calls; never by both. Drafts are the likeliest tokens and go with `ExactMatch`:
    whatever the times, the text is the target's own.
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
        self._under_way: Future[None] | None = None
        self._rounds: list[tuple[PipelinedDrafter, DraftChain]] = []
        self._closing = False
        self._hurry = False

    def begin(self, request: DraftRequest = UNKNOWN_REQUEST) -> Drafter:  # noqa: ARG002
        return PipelinedDrafter(self, self.cache.open())

    def propose(self, asks: Sequence[ProposalRequest]) -> Sequence[DraftProposal | BaseException]:
        own = [(drafter, most) for drafter, most in asks if isinstance(drafter, PipelinedDrafter)]
        self._gamma.target_ended()
        self._rest()
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
                self._let_go(drafter)

    def close(self) -> None:
        self._closing = True
        self._worker.close()
        with suppress(Exception):  # nobody is left who could be told
            self._rest()

    def offer(self, asks: Sequence[tuple[PipelinedDrafter, int]]) -> Sequence[DraftTree]:
        """What the target reads now. The draft model is at rest."""
        for drafter, most in asks:
            drafter.offered = min(most, len(drafter.ahead))
        return [
            DraftTree.chain([chosen.token for chosen in drafter.ahead[: drafter.offered]])
            for drafter, _ in asks
        ]

    def settled(self, drafter: PipelinedDrafter, settled: VerifyResult) -> None:
        """The text of a drafter went on; for methods that learn from it."""

    def _settle(self, drafter: PipelinedDrafter) -> None:
        settled = drafter.settle()
        self.discard(settled.lost)
        self.thrown_away += settled.thrown_away
        self.settled(drafter, settled)

    def _begin_round(self, asks: Sequence[tuple[PipelinedDrafter, int]]) -> None:
        gamma = self._pacing.most(self._gamma.length)
        self._rounds = []
        for drafter, most in asks:
            # beyond one full draft and one round nothing is gained by being ahead
            room = min(gamma, most + gamma - len(drafter.ahead)) if most else 0
            ahead = tuple(chosen.token for chosen in drafter.ahead)
            rule = self._rule(drafter, len(ahead))
            chain = DraftChain(drafter.line, self._choice, room, ahead, rule)
            drafter.growing = chain.chosen
            self._rounds.append((drafter, chain))
        self._hurry = False
        chains = [chain for _, chain in self._rounds]
        self._under_way = self._worker.start(lambda: self._draft(chains))

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
        """The round's work, on the worker."""
        steady = all(
            len(chain.line.unread(chain.ahead)[1]) <= _FEW for chain in chains if chain.most
        )
        before, began = self.cache.forwards, self._now()
        grow_chains(self.cache, chains)
        if steady:  # a pass over a prompt says nothing of one over a token
            self._gamma.drafted(self.cache.forwards - before, self._now() - began)

    def _rest(self) -> None:
        """Wait until the draft model is at rest, and take what it drafted."""
        under_way, self._under_way = self._under_way, None
        if under_way is None:
            return
        self._hurry = True
        rounds, self._rounds = self._rounds, []
        try:
            under_way.result()
        finally:
            for drafter, chain in rounds:
                drafter.ahead += chain.chosen
                drafter.growing = ()
                if drafter.ended:
                    self._let_go(drafter)

    def _let_go(self, drafter: PipelinedDrafter) -> None:
        self._settle(drafter)
        self.cache.close(drafter.line)
