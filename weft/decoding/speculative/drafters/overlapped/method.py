"""Draft model and target at work at the same time, in rounds: one pass of the target each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, Protocol

from weft.decoding.speculative.accept.match import Match
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Drafter
from weft.decoding.speculative.drafters.model.cache import DraftCache
from weft.decoding.speculative.drafters.model.chain import Chain, grow
from weft.decoding.speculative.drafters.model.choice import Chosen, Likeliest
from weft.decoding.speculative.drafters.overlapped.drafter import AheadDrafter, Settled
from weft.decoding.speculative.drafters.overlapped.gamma import Gamma
from weft.decoding.speculative.drafters.overlapped.worker import Worker
from weft.decoding.speculative.lengths import Always, Lengths
from weft.decoding.speculative.method import Ask
from weft.decoding.speculative.tree import DraftTree

_FEW: Final = 16
"""Tokens that a pass reads in about the time of one."""


class Pacing(Protocol):
    """How far and how long to draft while the target is busy."""

    @property
    def waits(self) -> bool:
        """Whether a round lasts until its draft is complete, or ends with the target's pass."""

    def most(self, gamma: int) -> int:
        """Tokens of a round, where `gamma` fill the time of a pass."""

    def goes_on(self, ahead: int, chosen: Sequence[Chosen], misses: int) -> bool:
        """Whether to draft on after `ahead` tokens and what was chosen behind them in this round.

        `misses`: of so many rounds in a row the text went on otherwise.
        """


class Overlapped:
    """Implements `Method`. `propose` ends a round and begins the next.

    The end: the draft model comes to rest, and what was drafted while the target verified is held
    against what it wrote. The beginning: what still holds is proposed, and the draft model goes on
    behind it in `worker`. The network of `cache` is used by the worker while a round lasts, and
    else by who calls; never by both. Drafts are the likeliest tokens and go with `Match`: whatever
    the times, the text is the target's own.
    """

    acceptor = Match()

    def __init__(
        self,
        name: str,
        cache: DraftCache,
        worker: Worker,
        gamma: Gamma,
        pacing: Pacing,
        now: Callable[[], float],
        longest: int,
    ) -> None:
        self.name = name
        self.thrown_away = 0
        """Drafted tokens that the target never read."""
        self.cache = cache
        self._worker = worker
        self._gamma = gamma
        self._pacing = pacing
        self._now = now
        self._longest = longest
        self._choice = Likeliest()
        self._under_way: Future[None] | None = None
        self._rounds: list[tuple[AheadDrafter, Chain]] = []
        self._closing = False
        self._hurry = False

    @property
    def forwards(self) -> int:
        """Passes of the draft model so far; one for many rows counts once."""
        return self.cache.forwards

    def lengths(self) -> Lengths:
        return Always(self._longest)

    def begin(self) -> Drafter:
        return AheadDrafter(self, self.cache.open())

    def propose(self, asks: Sequence[Ask]) -> Sequence[Draft | BaseException]:
        own = [(drafter, most) for drafter, most in asks if isinstance(drafter, AheadDrafter)]
        self._gamma.target_ended()
        try:
            self._rest()
            for drafter, _ in own:
                self._settle(drafter)
            trees = self.offer(own)
            self._begin_round(own)
        except Exception as error:  # noqa: BLE001 - told to all rows, who go on without drafts
            return [error] * len(own)
        self._gamma.target_begins()
        return [Draft(tree, source=self.name) for tree in trees]

    def end(self, drafter: Drafter) -> None:
        if isinstance(drafter, AheadDrafter):
            drafter.ended = True  # its chain grows no more
            self._gamma.interrupted()
            if all(busy is not drafter for busy, _ in self._rounds):
                self._let_go(drafter)

    def close(self) -> None:
        self._closing = True
        self._worker.close()
        with suppress(Exception):  # nobody is left who could be told
            self._rest()

    def offer(self, asks: Sequence[tuple[AheadDrafter, int]]) -> Sequence[DraftTree]:
        """What the target reads now. The draft model is at rest."""
        for drafter, most in asks:
            drafter.offered = min(most, len(drafter.ahead))
        return [
            DraftTree.chain([chosen.token for chosen in drafter.ahead[: drafter.offered]])
            for drafter, _ in asks
        ]

    def settled(self, drafter: AheadDrafter, settled: Settled) -> None:
        """The text of a drafter went on; for methods that learn from it."""

    def _settle(self, drafter: AheadDrafter) -> None:
        settled = drafter.settle()
        self.discard(settled.lost)
        self.thrown_away += settled.thrown_away
        self.settled(drafter, settled)

    def discard(self, lost: Sequence[Chosen]) -> None:
        """Put on the timeline that the work on these tokens came to nothing."""
        if self.cache.timeline is not None:
            for chosen in lost:
                self.cache.timeline.discard(chosen.stamp)

    def _begin_round(self, asks: Sequence[tuple[AheadDrafter, int]]) -> None:
        gamma = self._pacing.most(self._gamma.length)
        self._rounds = []
        for drafter, most in asks:
            # beyond one full draft and one round nothing is gained by being ahead
            room = min(gamma, most + gamma - len(drafter.ahead)) if most else 0
            ahead = tuple(chosen.token for chosen in drafter.ahead)
            rule = self._rule(drafter, len(ahead))
            chain = Chain(drafter.line, self._choice, room, ahead, rule)
            drafter.growing = chain.chosen
            self._rounds.append((drafter, chain))
        self._hurry = False
        chains = [chain for _, chain in self._rounds]
        self._under_way = self._worker.start(lambda: self._draft(chains))

    def _rule(self, drafter: AheadDrafter, ahead: int) -> Callable[[Sequence[Chosen]], bool]:
        def goes_on(chosen: Sequence[Chosen]) -> bool:
            if self._closing or drafter.ended:
                return False
            if not self._pacing.waits and (self._hurry or drafter.missed):
                return False
            return self._pacing.goes_on(ahead, chosen, drafter.misses)

        return goes_on

    def _draft(self, chains: Sequence[Chain]) -> None:
        """The round's work, on the worker."""
        steady = all(
            len(chain.line.unread(chain.ahead)[1]) <= _FEW for chain in chains if chain.most
        )
        before, began = self.cache.forwards, self._now()
        grow(self.cache, chains)
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

    def _let_go(self, drafter: AheadDrafter) -> None:
        self._settle(drafter)
        self.cache.close(drafter.line)
