"""What a search is over: candidates, their outcomes case by case, and the two ports.

Knows no document and no model: an adapter makes a program of a candidate and runs it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from weft.core.errors import InputError

CaseId: TypeAlias = Hashable
Option: TypeAlias = Hashable
KnobOptions: TypeAlias = Mapping[str, Sequence[Option]]
"""The options of each knob, by the knob's name ("NODE.KNOB"); the first is the baseline's."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A setting for each knob. Equal settings are one candidate."""

    settings: tuple[tuple[str, Option], ...]

    @classmethod
    def of(cls, settings: Mapping[str, Option]) -> Candidate:
        """The candidate of these settings, whatever their order."""
        return cls(tuple(sorted(settings.items(), key=lambda item: item[0])))

    def replace(self, knob: str, option: Option) -> Candidate:
        """This candidate with another option of one knob."""
        return self.of(dict(self.settings) | {knob: option})

    def edits(self, baseline: Candidate) -> dict[str, Option]:
        """The settings in which it differs from `baseline`."""
        own, other = dict(self.settings), dict(baseline.settings)
        return {knob: option for knob, option in own.items() if other.get(knob) != option}


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """One case under one candidate, averaged over replicates.

    `score` is better when higher, and 0 where the program failed; `seconds` is wall time, recorded
    or simulated, never that of a cache hit; `cost` is money; `calls` counts the fresh model calls
    that this outcome took now: none where every node's outcome was in the cache. `scored`: False
    where nothing could be measured, which says nothing of the candidate; its score is 0 then.
    """

    score: float
    seconds: float = 0.0
    cost: float = 0.0
    tokens: int = 0
    calls: int = 0
    scored: bool = True


class Evaluator(Protocol):
    """Runs a candidate on cases, with the same random numbers for every candidate."""

    async def outcomes(
        self, candidate: Candidate, cases: Sequence[CaseId], replicates: int
    ) -> Sequence[CaseOutcome]:
        """One outcome for each of `cases`, in their order."""
        ...

    def calls_needed(self, candidate: Candidate, cases: Sequence[CaseId], replicates: int) -> int:
        """The most fresh model calls that `outcomes` would make now. Makes none."""
        ...


Block: TypeAlias = Mapping[Candidate, Sequence[CaseOutcome]]
"""Outcomes of several candidates on the same cases, made in the same round."""


@dataclass(frozen=True, slots=True)
class SearchState:
    """What a proposer sees: the baseline, the knobs, all blocks so far, and the best candidate."""

    baseline: Candidate
    knobs: KnobOptions
    blocks: Sequence[Block]
    best: Candidate


@dataclass(frozen=True, slots=True)
class Proposal:
    """Candidates, and the fresh model calls that it took to propose them."""

    candidates: Sequence[Candidate]
    calls: int = 0


class Proposer(Protocol):
    """Proposes candidates. `calls` is the most model calls that one proposal takes."""

    @property
    def calls(self) -> int:
        """The most fresh model calls of one `propose`."""
        ...

    async def propose(self, state: SearchState) -> Proposal:
        """Candidates to look at next; may be none, may be known already."""
        ...


@dataclass(slots=True)
class CallBudget:
    """Counts fresh model calls against a limit. Whoever cannot afford a step does not begin it."""

    limit: int
    spent: int = 0
    by: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise InputError(f"a budget of {self.limit} model calls pays for nothing")

    @property
    def left(self) -> int:
        """Calls that may still be made."""
        return self.limit - self.spent

    def spend(self, calls: int, purpose: str) -> None:
        """Book calls that were made."""
        self.spent += calls
        self.by[purpose] = self.by.get(purpose, 0) + calls
