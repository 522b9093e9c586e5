"""When enough branches have ended: the running count of one join. Pure; cancels nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from weft.core.errors import Failure, JoinUnsatisfied
from weft.core.events import Outcome
from weft.core.ids import NodeId
from weft.engine.graph.node import MISSING, Join


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decided join: `winners` in declared order, or a `failure` when it can never be satisfied.

    `left_out`: every branch was left out on purpose, so the joining node is too.
    """

    winners: tuple[NodeId, ...] = ()
    failure: Failure | None = None
    left_out: bool = False

    def error(self) -> JoinUnsatisfied:
        """The failure of an unsatisfiable join, to be raised in its node."""
        assert self.failure is not None
        return JoinUnsatisfied(self.failure.message, retryable=self.failure.retryable)


_MAX_REASONS: Final = 3
LOSSES: Final = "Incomplete"
"""The failure of a join that continued without some of its branches."""
DECIDED_EARLY: Final = frozenset(("any", "quorum", "first_valid"))


class JoinCount:
    """Counts the branches of one join as they end. Each branch arrives exactly once.

    `winners`: the branches for which an earlier part of the run decided the join. While all of them
    can still win, no other branch does.
    """

    __slots__ = (
        "_awaited",
        "_bad",
        "_cancelled",
        "_join",
        "_left_out",
        "_open",
        "_skipped",
        "_spared",
        "_won",
        "sources",
    )

    def __init__(
        self, join: Join, sources: Sequence[NodeId], winners: Sequence[NodeId] | None = None
    ) -> None:
        self._join = join
        self.sources = {source: index for index, source in enumerate(sources)}
        self._open = len(self.sources)
        self._won: list[NodeId] = []
        self._spared: list[NodeId] = []
        self._awaited = frozenset(winners or ())
        if len(self._awaited) != self._needed or not self._awaited.issubset(self.sources):
            self._awaited = frozenset()
        self._bad: list[tuple[int, Failure]] = []
        self._skipped = 0
        self._cancelled = 0
        self._left_out = 0

    @property
    def lost(self) -> Failure | None:
        """The branches that a join with counted losses continued without, and why."""
        if self._join.mode != "best_effort" or not (self._join.counts and self._bad):
            return None
        skipped, cancelled = self._skipped, self._cancelled
        ends = {"failed": len(self._bad) - skipped - cancelled}
        ends |= {"were skipped": skipped, "were cancelled": cancelled}
        of_all = f" of {len(self.sources)} {self._join.counts}"
        parts = [(number, how) for how, number in ends.items() if number]
        text = ", ".join(
            f"{number}{'' if place else of_all} {how}" for place, (number, how) in enumerate(parts)
        )
        failures = self._failures()
        shared = len({failure.message for failure in failures}) == 1
        why = failures[0].message if shared else _reasons(failures, self._join.counts)
        return self._unmet(f"{text}: {why}", LOSSES)

    def start(self) -> Verdict | None:
        """The verdict before any branch ended: only a join without branches has one."""
        return None if self._open else self._final()

    def arrive(self, source: NodeId, outcome: Outcome) -> Verdict | None:
        """Count the end of branch `source`; return the verdict once the join is decided."""
        self._open -= 1
        if outcome.ok:
            self._won_or_not(source, outcome)
        elif outcome.failure is None:
            self._left_out += 1
        else:
            self._bad.append((self.sources[source], outcome.failure))
            self._skipped += outcome.status == "skipped"
            self._cancelled += outcome.status == "cancelled"
        if self._join.mode not in DECIDED_EARLY:
            return None if self._open else self._final()
        if source in self._awaited and source not in self._won:
            self._won += self._spared  # the earlier winners cannot all win any more
            self._awaited = frozenset()
        if len(self._won) >= self._needed:
            return Verdict(self._in_order()[: self._needed])
        return self._final() if len(self._won) + self._open < self._needed else None

    @property
    def _needed(self) -> int:
        return self._join.k if self._join.mode == "quorum" else 1

    def _won_or_not(self, source: NodeId, outcome: Outcome) -> None:
        valid = self._join.valid
        if self._join.mode != "first_valid" or valid is None:
            self._win(source)
            return
        try:
            accepted, why = bool(valid(outcome.value)), "is not valid"
        except Exception as error:  # noqa: BLE001 - a user's predicate may raise anything
            accepted, why = False, f"made the test for validity raise {error!r}"
        if accepted:
            self._win(source)
        else:
            failure = Failure("NotValid", f"the value of {source} {why}")
            self._bad.append((self.sources[source], failure))

    def _win(self, source: NodeId) -> None:
        spared = self._awaited and source not in self._awaited
        (self._spared if spared else self._won).append(source)

    def _in_order(self) -> tuple[NodeId, ...]:
        return tuple(sorted(self._won, key=self.sources.__getitem__))

    def _final(self) -> Verdict:
        mode = self._join.mode
        if mode == "best_effort":
            if self._join.default is MISSING and not self._won and self.lost is not None:
                return Verdict(failure=replace(self.lost, error="JoinUnsatisfied"))
            places = [index for index, _ in self._bad] + [self.sources[won] for won in self._won]
            ended = list(self.sources)
            return Verdict(tuple(ended[place] for place in sorted(places)))
        if mode == "all" and not self._bad:
            return Verdict(self._in_order())
        if self._left_out and not self._bad and not self._won:
            return Verdict(left_out=True)
        return Verdict(failure=self._unsatisfied())

    def _unsatisfied(self) -> Failure:
        total = len(self.sources)
        needed = total - self._left_out if self._join.mode == "all" else self._needed
        why = _reasons(self._failures())
        return self._unmet(
            f"{len(self._won)} of {total} branches succeeded, {needed} needed"
            + (f": {why}" if why else "")
        )

    def _failures(self) -> list[Failure]:
        return [failure for _, failure in sorted(self._bad, key=lambda bad: bad[0])]

    def _unmet(self, message: str, error: str = "JoinUnsatisfied") -> Failure:
        retryable = any(failure.retryable for _, failure in self._bad)
        return Failure(error, message, retryable=retryable)


def _reasons(failures: Sequence[Failure], branches: str = "branches") -> str:
    """Why branches failed, in their order; a shared reason appears once."""
    counts = Counter(failure.message for failure in failures)
    top = list(counts.items())[:_MAX_REASONS]
    texts = [why if times == 1 else f"{times} {branches}: {why}" for why, times in top]
    rest = len(failures) - sum(times for _, times in top)
    return "; ".join(texts) + (f" and {rest} more" if rest else "")
