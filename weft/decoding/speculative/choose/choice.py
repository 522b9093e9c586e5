"""The method that chooses among methods, for every sequence at every step (`decode: auto`).

None of them is one of the choices. What was learnt is kept in a file, and read when it is made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from weft.core.ports.clock import Clock, SystemClock
from weft.decoding.speculative.accept.match import Match
from weft.decoding.speculative.asked import Asked, begun
from weft.decoding.speculative.budget import shelf
from weft.decoding.speculative.budget.costs import Costs
from weft.decoding.speculative.choose.arm import Arm
from weft.decoding.speculative.choose.choosing import Choosing
from weft.decoding.speculative.choose.exploring import Exploring
from weft.decoding.speculative.choose.history import DEPTHS, History
from weft.decoding.speculative.choose.pulse import Pulse
from weft.decoding.speculative.choose.worth import NO_OFFER, Cost, Offer, share_out
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Drafter
from weft.decoding.speculative.lengths import Always, Lengths
from weft.decoding.speculative.method import Ask
from weft.decoding.speculative.speculation import PLAIN

MARGIN: Final = 1.04
"""By what a draft has to be expected to beat none, as what is measured is never exact."""
_TRIED_DEPTH: Final = 4
_UNSEEN: Final = 1.0
"""What a first draft is thought to take, in passes: it reads the prompt, too."""
_SAVED_EVERY: Final = 32
_NODES: Final = 64
_CONTEXT_STEP: Final = 256


@dataclass(frozen=True, slots=True)
class Plan:
    """For one sequence: a draft that is there, or the arm that shall make one of so many levels.

    `tried`: it is made to learn, and read whatever is expected of it; `price` is what reading it
    takes and what else could have been gained, in passes.
    """

    draft: Draft | BaseException = PLAIN
    offer: Offer = NO_OFFER
    arm: Arm | None = None
    levels: int = 0
    tried: bool = False
    price: float = 0.0


class Choice:
    """Implements `Method`. `costs` are the target's; `kept` is the file of the history.

    All arms must go with `Match`, and read no rows beside their drafts: then the text, and how far
    any draft would have been right, is the same whatever is chosen.
    """

    name = "auto"
    acceptor = Match()

    def __init__(
        self,
        arms: Sequence[Arm],
        costs: Costs,
        history: History,
        *,
        clock: Clock | None = None,
        kept: Path | None = None,
    ) -> None:
        self._arms = {arm.name: arm for arm in arms}
        self._costs = costs
        self._history = history
        self._clock = clock or SystemClock()
        self._kept = kept
        self._exploring = Exploring()
        self._pulse = Pulse(self._clock)
        self._curves: dict[int, Cost] = {}
        self._ended = 0

    def lengths(self) -> Lengths:
        """As much as is worth it: that is chosen with the draft, not before."""
        return Always(_NODES)

    def begin(self) -> Choosing:
        return self.begin_for(Asked())

    def begin_for(self, asked: Asked) -> Choosing:
        """The drafter of a new sequence, whose label and temperature say what it is like."""
        begun_arms = {name: begun(arm.method, asked) for name, arm in self._arms.items()}
        free = {name: each for name, each in begun_arms.items() if self._arms[name].free}
        paid = {name: each for name, each in begun_arms.items() if name not in free}
        return Choosing(free, paid, self._history, asked)

    def propose(self, asks: Sequence[Ask]) -> list[Draft | BaseException]:
        self._pulse.begins(len(asks))
        rows = [_own(drafter) for drafter, _ in asks]
        cost = self._cost(len(asks), max((row.tokens for row in rows), default=0))
        plans = [
            self._plan(row, min(most, DEPTHS), len(asks), cost)
            for row, (_, most) in zip(rows, asks, strict=True)
        ]
        if self._pulse.lacks(len(asks)):
            plans = [Plan() for _ in plans]
        self._make(rows, plans)
        depths = share_out([plan.offer for plan in plans], cost, MARGIN)
        one = cost(len(asks)) / max(len(asks), 1)
        drafts = [
            self._settled(
                row, plan, depth, lambda nodes: (cost(len(asks) + nodes) / one) - len(asks)
            )
            for row, plan, depth in zip(rows, plans, depths, strict=True)
        ]
        nodes = sum(len(draft.tree) for draft in drafts if isinstance(draft, Draft))
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
        """Write the history to its file. Where that cannot be, it is lost with the process."""
        if self._kept is not None:
            shelf.write(self._kept, self._history.as_json())

    def _cost(self, rows: int, tokens: int) -> Cost:
        """By the measured curve, as much steeper or flatter as the clock says of late."""
        context = -(-tokens // _CONTEXT_STEP) * _CONTEXT_STEP
        if context not in self._curves:
            self._curves[context] = self._costs.curve(context)
        curve, steepness = self._curves[context], self._pulse.steepness(rows)
        plain = curve(max(rows, 1))
        return lambda size: plain + steepness * (curve(size) - plain)

    def _plan(self, row: Choosing, most: int, rows: int, cost: Cost) -> Plan:
        """The best that is expected for one sequence, were it the only one to draft."""
        self._exploring.passed()
        best, found = MARGIN * rows / cost(rows), Plan()
        if most < 1:
            return found
        for name, arm in self._arms.items():
            if arm.free:
                try:
                    draft = row.offered(name).clipped(most)
                except Exception as error:  # noqa: BLE001 - told to who asked
                    return Plan(error)
                offer = Offer.of(draft.tree, row.shadows[name].chances)
                plan = Plan(draft, offer)
            else:
                offer = self._expected(row, arm, most)
                levels = offer.best(rows, cost)[1]
                if levels * offer.cost > row.ledger.room:
                    continue
                plan = Plan(arm=arm, levels=levels)
            pays, _ = offer.best(rows, cost)
            if pays > best:
                best, found = pays, plan
        return self._trial(row, most, rows, cost, best, found.arm) or found

    def _expected(self, row: Choosing, arm: Arm, most: int, bonus: float = 0.0) -> Offer:
        """What a paid arm may offer, before it is asked."""
        chances = row.shadows[arm.name].chances
        nodes = arm.nodes[: min(most, chances.depths)]
        gains = chances.reached(len(nodes), bonus)
        second = self._costs.second(row.tokens)
        # what was never measured is thought cheap: the first trial tells
        return Offer(tuple(gains), nodes, (arm.level_s or 0.0) / second)

    def _trial(
        self, row: Choosing, most: int, rows: int, cost: Cost, best: float, chosen: Arm | None
    ) -> Plan | None:
        """A paid arm that may be better than the best, if finding out can be paid for."""
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
                return Plan(arm=arm, levels=levels, tried=True, price=price)
        return None

    def _make(self, rows: Sequence[Choosing], plans: list[Plan]) -> None:
        """Let the paid arms that were chosen draft, each for all of its sequences at once."""
        asked: dict[str, list[int]] = defaultdict(list)
        for number, plan in enumerate(plans):
            if plan.arm is not None:
                asked[plan.arm.name].append(number)
        for name, numbers in asked.items():
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
                    plans[number] = Plan(draft)
                else:
                    chances = row.shadows[name].chances
                    if not draft.tree.tokens:
                        chances.observe(1, 0)  # as good as a wrong one, at the same price
                    offer = Offer.of(draft.tree, chances)
                    plans[number] = replace(plan, draft=draft, offer=offer)

    def _settled(self, row: Choosing, plan: Plan, depth: int, price: Cost) -> Draft | BaseException:
        """What is read of a draft: no more than the sequence may lose, at the `price` of nodes."""
        if isinstance(plan.draft, BaseException):
            return plan.draft
        if plan.arm is not None:
            # it was paid for: what would have come of the rest is as good to know
            row.shadows[plan.arm.name].follow(plan.draft.tree)
        if plan.tried:
            return plan.draft
        while depth and price(sum(plan.offer.nodes[:depth])) > row.ledger.room:
            depth -= 1
        if not depth:
            return PLAIN
        row.ledger.spend(price(sum(plan.offer.nodes[:depth])))
        return plan.draft.clipped(depth)


def _own(drafter: Drafter) -> Choosing:
    assert isinstance(drafter, Choosing)
    return drafter
