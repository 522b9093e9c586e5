"""The method that chooses among methods, for every sequence at every step (`decode: auto`).

It may also choose none. The history is read from a file at the start, and saved to it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from weft.core.ports.clock import Clock, SystemClock
from weft.decoding.speculative import user_cache
from weft.decoding.speculative.acceptance import ExactMatch
from weft.decoding.speculative.draft import DraftProposal
from weft.decoding.speculative.drafter import (
    UNKNOWN_REQUEST,
    Drafter,
    DraftRequest,
    ProposalRequest,
    SpeculativeMethod,
    propose_all,
)
from weft.decoding.speculative.drafters.auto.gain import (
    NO_GAIN,
    ExpectedGain,
    ExplorationBudget,
    RelativeCost,
    StepTimes,
    share_out,
)
from weft.decoding.speculative.drafters.auto.history import DEPTHS, AcceptanceHistory
from weft.decoding.speculative.drafters.auto.sequence import AutoDrafter
from weft.decoding.speculative.pass_costs import PassCosts
from weft.decoding.speculative.speculation import NO_DRAFT

_LAST: Final = 9


class Arm:
    """A method to choose. `free`: its drafts cost next to nothing, so they may serve observation.

    Others are measured: `level_s`, the seconds of a level of a draft, and `nodes`, the number of
    nodes in each level of the last one.
    """

    def __init__(self, method: SpeculativeMethod, *, free: bool, longest: int = 8) -> None:
        self.name = method.name
        self.method = method
        self.free = free
        self.nodes: tuple[int, ...] = (1,) * longest
        self._seconds: deque[float] = deque(maxlen=_LAST)

    @property
    def level_s(self) -> float | None:
        """None before the first draft. A median, as the first draft of a text takes longer."""
        return median(self._seconds) if self._seconds else None

    def timed(
        self, asks: Sequence[ProposalRequest], clock: Clock
    ) -> tuple[Sequence[DraftProposal | BaseException], float]:
        """Drafts for some sequences of the method, and their seconds."""
        before = clock.now()
        drafts = propose_all(self.method, asks)
        seconds = clock.now() - before
        self._learn(drafts, seconds)
        return drafts, seconds

    def _learn(self, drafts: Sequence[DraftProposal | BaseException], seconds: float) -> None:
        depths = [draft.tree.depths for draft in drafts if isinstance(draft, DraftProposal)]
        levels = sum(int(np.max(each)) for each in depths)
        self._seconds.append(seconds / max(levels, 1))
        largest = np.bincount(max(depths, key=len))[1:] if depths else ()
        # deeper levels were not requested this time
        self.nodes = (*(int(count) for count in largest), *self.nodes[len(largest) :])


MARGIN: Final = 1.04
"""The factor by which a draft must be expected to beat none, as measurements are inexact."""
_TRIED_DEPTH: Final = 4
_UNSEEN: Final = 1.0
"""The assumed cost of a first draft, in passes: it reads the prompt, too."""
_SAVED_EVERY: Final = 32
_NODES: Final = 64
_CONTEXT_STEP: Final = 256


@dataclass(frozen=True, slots=True)
class StepPlan:
    """For one sequence: a finished draft, or the arm that makes one of `levels`.

    `tried`: made to learn, and read whatever is expected of it; `price` is the cost of reading it,
    including the gain forgone, in passes.
    """

    draft: DraftProposal | BaseException = NO_DRAFT
    offer: ExpectedGain = NO_GAIN
    arm: Arm | None = None
    levels: int = 0
    tried: bool = False
    price: float = 0.0


class AutoMethod:
    """Implements `SpeculativeMethod`. `costs` are the target's; `path` is the file of the history.

    All arms must use `ExactMatch` and no auxiliary rows: then neither the text nor the acceptance
    of any draft depends on the choices.
    """

    name = "auto"
    acceptor = ExactMatch()

    def __init__(
        self,
        arms: Sequence[Arm],
        costs: PassCosts,
        history: AcceptanceHistory,
        *,
        clock: Clock | None = None,
        path: Path | None = None,
    ) -> None:
        self._arms = {arm.name: arm for arm in arms}
        self._costs = costs
        self._history = history
        self._clock = clock or SystemClock()
        self._path = path
        self._exploring = ExplorationBudget()
        self._pulse = StepTimes(self._clock)
        self._curves: dict[int, RelativeCost] = {}
        self._ended = 0

    @property
    def nodes(self) -> int:
        """The most of any draft; the size is chosen with the draft."""
        return _NODES

    def begin(self, request: DraftRequest = UNKNOWN_REQUEST) -> AutoDrafter:
        """The drafter of a new sequence, with the features of its request."""
        begun_arms = {name: arm.method.begin(request) for name, arm in self._arms.items()}
        free = {name: each for name, each in begun_arms.items() if self._arms[name].free}
        paid = {name: each for name, each in begun_arms.items() if name not in free}
        return AutoDrafter(free, paid, self._history, request)

    def propose(self, asks: Sequence[ProposalRequest]) -> list[DraftProposal | BaseException]:
        self._pulse.begins(len(asks))
        rows = [_own(drafter) for drafter, _ in asks]
        cost = self._cost(len(asks), max((row.tokens for row in rows), default=0))
        plans = [
            self._plan(row, min(most, DEPTHS), len(asks), cost)
            for row, (_, most) in zip(rows, asks, strict=True)
        ]
        if self._pulse.lacks(len(asks)):
            plans = [StepPlan() for _ in plans]
        self._make(rows, plans)
        depths = share_out([plan.offer for plan in plans], cost, MARGIN)
        one = cost(len(asks)) / max(len(asks), 1)
        drafts = [
            self._settled(
                row, plan, depth, lambda nodes: (cost(len(asks) + nodes) / one) - len(asks)
            )
            for row, plan, depth in zip(rows, plans, depths, strict=True)
        ]
        nodes = sum(len(draft.tree) for draft in drafts if isinstance(draft, DraftProposal))
        self._pulse.proposed(len(asks), cost(len(asks) + nodes) / cost(len(asks)) if nodes else 1.0)
        return drafts

    def end(self, drafter: Drafter) -> None:
        for name, each in _own(drafter).drafters.items():
            self._arms[name].method.end(each)
        self._ended += 1
        if self._ended % _SAVED_EVERY == 0:
            self.save()

    def close(self) -> None:
        self.save()
        for arm in self._arms.values():
            arm.method.close()

    def save(self) -> None:
        """Write the history to its file; errors are ignored."""
        if self._path is not None:
            user_cache.write(self._path, self._history.as_json())

    def _cost(self, rows: int, tokens: int) -> RelativeCost:
        """The measured curve, scaled by the recently measured steepness."""
        context = -(-tokens // _CONTEXT_STEP) * _CONTEXT_STEP
        if context not in self._curves:
            self._curves[context] = self._costs.curve(context)
        curve, steepness = self._curves[context], self._pulse.steepness(rows)
        plain = curve(max(rows, 1))
        return lambda size: plain + steepness * (curve(size) - plain)

    def _plan(self, row: AutoDrafter, most: int, rows: int, cost: RelativeCost) -> StepPlan:
        """The best plan for one sequence, as if no other drafted."""
        self._exploring.passed()
        best, chosen = MARGIN * rows / cost(rows), StepPlan()
        if most < 1:
            return chosen
        for name, arm in self._arms.items():
            if arm.free:
                try:
                    draft = row.offered(name).clipped(most)
                except Exception as error:  # noqa: BLE001 - returned to the caller
                    return StepPlan(error)
                offer = ExpectedGain.of(draft.tree, row.shadows[name].chances)
                plan = StepPlan(draft, offer)
            else:
                offer = self._expected(row, arm, most)
                levels = offer.best(rows, cost)[1]
                if levels * offer.cost > row.ledger.room:
                    continue
                plan = StepPlan(arm=arm, levels=levels)
            pays, _ = offer.best(rows, cost)
            if pays > best:
                best, chosen = pays, plan
        return self._trial(row, most, rows, cost, best, chosen.arm) or chosen

    def _expected(self, row: AutoDrafter, arm: Arm, most: int, bonus: float = 0.0) -> ExpectedGain:
        """The expected gain of a paid arm, before it drafts."""
        chances = row.shadows[arm.name].chances
        nodes = arm.nodes[: min(most, chances.depths)]
        gains = chances.reached(len(nodes), bonus)
        second = self._costs.second(row.tokens)
        # an unmeasured arm counts as cheap: its first trial measures it
        return ExpectedGain(tuple(gains), nodes, (arm.level_s or 0.0) / second)

    def _trial(
        self,
        row: AutoDrafter,
        most: int,
        rows: int,
        cost: RelativeCost,
        best: float,
        chosen: Arm | None,
    ) -> StepPlan | None:
        """A paid arm that may be better than the best, if the budget covers a trial."""
        for name, arm in self._arms.items():
            if arm.free or arm is chosen:
                continue
            bonus = self._exploring.bonus(row.shadows[name].chances.tests)
            hopeful = self._expected(row, arm, min(most, _TRIED_DEPTH), bonus)
            pays, levels = hopeful.best(rows, cost)
            size = rows + sum(hopeful.nodes[:levels])
            price = cost(size) - cost(rows) + max(best * cost(rows) - rows, 0.0)
            guess = hopeful.cost * levels if arm.level_s is not None else _UNSEEN
            if pays > best and self._exploring.affords(price + guess):
                return StepPlan(arm=arm, levels=levels, tried=True, price=price)
        return None

    def _make(self, rows: Sequence[AutoDrafter], plans: list[StepPlan]) -> None:
        """Draft with the chosen paid arms, each for all of its sequences at once."""
        by_arm: dict[str, list[int]] = defaultdict(list)
        for number, plan in enumerate(plans):
            if plan.arm is not None:
                by_arm[plan.arm.name].append(number)
        for name, numbers in by_arm.items():
            arm = self._arms[name]
            asks = [(rows[n].drafters[name], sum(arm.nodes[: plans[n].levels])) for n in numbers]
            drafts, seconds = arm.timed(asks, self._clock)
            for number, draft in zip(numbers, drafts, strict=True):
                row, plan = rows[number], plans[number]
                taken = seconds / len(numbers) / self._costs.second(row.tokens)
                if plan.tried:
                    self._exploring.spend(plan.price + taken)
                else:
                    row.ledger.spend(taken)
                if isinstance(draft, BaseException):
                    plans[number] = StepPlan(draft)
                else:
                    chances = row.shadows[name].chances
                    if not draft.tree.tokens:
                        chances.observe(1, 0)  # counts as a wrong one, at the same price
                    offer = ExpectedGain.of(draft.tree, chances)
                    plans[number] = replace(plan, draft=draft, offer=offer)

    def _settled(
        self, row: AutoDrafter, plan: StepPlan, depth: int, price: RelativeCost
    ) -> DraftProposal | BaseException:
        """The part of a draft to read: within the sequence's budget, at the `price` of nodes."""
        if isinstance(plan.draft, BaseException):
            return plan.draft
        if plan.arm is not None:
            # it was paid for: observe all of it
            row.shadows[plan.arm.name].follow(plan.draft.tree)
        if plan.tried:
            return plan.draft
        while depth and price(sum(plan.offer.nodes[:depth])) > row.ledger.room:
            depth -= 1
        if not depth:
            return NO_DRAFT
        row.ledger.spend(price(sum(plan.offer.nodes[:depth])))
        return plan.draft.clipped(depth)


def _own(drafter: Drafter) -> AutoDrafter:
    assert isinstance(drafter, AutoDrafter)
    return drafter
