"""The facts, steps, goals and tools of one rehearsal, and the search over them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice

from weft.core.facts import Bindings, Fact, FactPattern, numbered
from weft.planner.rehearsal.grounding import MAX_CALLS, ground_calls
from weft.planner.rehearsal.literals import Literals
from weft.planner.rehearsal.order import StepAccess
from weft.planner.rehearsal.search import FillAction, FillSearch, NoFill, RelaxedPlan, StepAction
from weft.planner.rehearsal.steps import BoundStep
from weft.planner.rehearsal.tool_facts import ToolFacts
from weft.planner.rehearsal.world import World


class FillProblem:
    """Steps that run one after the other, beginning with `facts` and ending with `goals`.

    `declared` are the facts of the tools, by name.
    """

    def __init__(
        self,
        steps: Sequence[BoundStep],
        declared: Mapping[str, ToolFacts],
        facts: Collection[Fact],
        goals: Sequence[FactPattern],
    ) -> None:
        self.declared = declared
        self._facts = frozenset(facts)
        self._goals = numbered(goals)
        self._steps = steps
        # All facts that may ever hold: the given ones, and what steps and filled-in calls make.
        self._reach = World(sorted(facts))
        for each in steps:
            for make in each.facts.makes if each.facts else ():
                if not make.negated:
                    self._reach.add(make.bind(each.bindings).fact())

    def runs(self, steps: Iterable[BoundStep]) -> bool:
        """Whether `steps` run one after the other, and the goals hold after them."""
        world = World(self._facts)
        for each in steps:
            if each.facts is None:
                continue
            if world.unmet(each.facts.needs, each.bindings) is not None:
                return False
            world.apply(each.facts.makes, each.bindings)
        return world.unmet(self._goals, {}) is None

    def search(self, most_states: int) -> tuple[list[FillAction | None], int]:
        """The calls to fill in and None for each step, in order, and the number of states seen.

        Raises: `NoFill`; `TooManyCalls`.
        """
        fill = [facts for facts in self.declared.values() if facts.fill]
        calls = ground_calls(self._reach, fill, self._wanted(), self._constants())
        actions = []
        for call in calls:
            needs = self.literals.needs(call.facts.needs, call.bindings, self._facts)
            if needs is not None:
                change = self.literals.change(call.facts, call.bindings)
                actions.append(FillAction(call, needs, change))
        steps = [self._action(each) for each in self._steps]
        steps.append(StepAction(self._variants(self._goals, {})))
        start = self.literals.state(self._facts)
        self._check_reach(steps, actions, start)
        search = FillSearch(steps, actions, most_states)
        return search.moves(start)[:-1], search.states

    @cached_property
    def literals(self) -> Literals:
        """The bits of all facts that can change; only of those found until it is first used."""
        return Literals(self._reach, self.declared.values())

    def accesses(self, steps: Iterable[BoundStep]) -> Iterator[StepAccess]:
        """What each of `steps`, which run one after the other, reads and changes."""
        state = self.literals.state(self._facts)
        for each in steps:
            action = self._action(each)
            reads = next(needs for needs in action.needs if state & needs == needs)
            yield StepAccess(reads, action.change)
            state = action.change.applied(state)

    def world(self, state: int) -> World:
        """The facts that hold in `state`."""
        return World(
            [*filter(self.literals.never_changes, self._facts), *self.literals.holding(state)]
        )

    def needs(self, step: int) -> tuple[Sequence[FactPattern], Bindings]:
        """What the step at place `step` needs; after the last: the goals."""
        if step == len(self._steps):
            return self._goals, {}
        found = self._steps[step]
        return (found.facts.needs if found.facts else ()), found.bindings

    def _wanted(self) -> Iterator[FactPattern]:
        for place in range(len(self._steps) + 1):
            needs, bindings = self.needs(place)
            yield from (need.bind(bindings) for need in needs)

    def _constants(self) -> list[str]:
        """All constants of facts, steps, goals and tools."""
        found = [constant for fact in self._reach for constant in fact.arguments]
        found += [constant for each in self._steps for constant in each.bindings.values()]
        patterns = [*self._goals]
        for facts in self.declared.values():
            patterns += (*facts.needs, *facts.makes)
        found += [term for each in patterns for term in each.terms if isinstance(term, str)]
        return list(dict.fromkeys(found))

    def _action(self, each: BoundStep) -> StepAction:
        if each.facts is None:
            return StepAction((0,))
        needs = self._variants(each.facts.needs, each.bindings)
        return StepAction(needs, self.literals.change(each.facts, each.bindings))

    def _variants(self, needs: Sequence[FactPattern], bindings: Bindings) -> tuple[int, ...]:
        """All ways to satisfy `needs`, as bits that have to be on."""
        positive = [need for need in needs if not need.negated]
        found = islice(self._reach.join(positive, bindings), MAX_CALLS)
        bits = (self.literals.needs(needs, each, self._facts) for each in found)
        return tuple(dict.fromkeys(each for each in bits if each is not None))

    def _check_reach(
        self, steps: Sequence[StepAction], actions: Sequence[FillAction], start: int
    ) -> None:
        """Refuse at once what no call can make, even if nothing is ever undone."""
        relaxed = RelaxedPlan(actions)
        everything = start
        for step in steps:
            everything |= step.change.adds
        for place, step in enumerate(steps):
            if relaxed.length(everything, step.needs) is None:
                state = start
                for before in steps[:place]:
                    state = before.change.applied(state)
                raise NoFill(place, state, spent=False)
