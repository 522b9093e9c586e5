"""Facts and their denials as bits, so that a world is one integer.

A denial has a bit of its own: what a call needs is then always a set of bits that are on.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Final

from weft.core.facts import Bindings, Fact, FactPattern
from weft.planner.rehearsal.tool_facts import ToolFacts
from weft.planner.rehearsal.world import World


@dataclass(frozen=True, slots=True)
class StateChange:
    """The bits that a call turns on, and those that it turns off."""

    adds: int = 0
    removes: int = 0

    def applied(self, state: int) -> int:
        """The world after the call."""
        return state & ~self.removes | self.adds


UNCHANGED: Final = StateChange()


class Literals:
    """The bits of all facts of `world` that calls of `tools` can change. Others never change."""

    def __init__(self, world: World, tools: Iterable[ToolFacts]) -> None:
        self._world = world
        self._changing = {(make.name, len(make.terms)) for facts in tools for make in facts.makes}
        kept = [fact for fact in world if self._changes(fact)]
        self._bits = {fact: 1 << (2 * place) for place, fact in enumerate(kept)}

    def _changes(self, fact: Fact) -> bool:
        return (fact.name, len(fact.arguments)) in self._changing

    def never_changes(self, fact: Fact) -> bool:
        """Whether no call makes or undoes `fact`."""
        return not self._changes(fact)

    def state(self, facts: Container[Fact]) -> int:
        """The world in which `facts` hold, and no others."""
        return sum(bit if fact in facts else bit << 1 for fact, bit in self._bits.items())

    def holding(self, state: int) -> list[Fact]:
        """The facts that hold in `state`, without those that never change."""
        return [fact for fact, bit in self._bits.items() if state & bit]

    def needs(
        self, patterns: Iterable[FactPattern], bindings: Bindings, start: Container[Fact]
    ) -> int | None:
        """The bits that have to be on; None where a fact that never changes stands against it.

        `start` has the facts that hold from the beginning.
        """
        found = 0
        for pattern in patterns:
            bound = pattern.bind(bindings)
            for fact in self._world.matching(bound) if bound.negated else (bound.fact(),):
                bit = self._bits.get(fact)
                if bit is not None:
                    found |= bit << 1 if bound.negated else bit
                elif (fact in start) is bound.negated:
                    return None
        return found

    def change(self, facts: ToolFacts, bindings: Bindings) -> StateChange:
        """What a call with these bindings changes."""
        bound = [make.bind(bindings) for make in facts.makes]
        made = {make.fact() for make in bound if not make.negated}
        lost = {fact for make in bound if make.negated for fact in self._world.matching(make)}
        adds = removes = 0
        for fact in made:
            adds |= self._bits[fact]
            removes |= self._bits[fact] << 1
        for fact in lost - made:
            adds |= self._bits[fact] << 1
            removes |= self._bits[fact]
        return StateChange(adds, removes)
