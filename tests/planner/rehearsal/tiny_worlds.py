"""Tiny random worlds, and what happens in them by exhaustive search: the slow oracle.

Five facts: `p(a)`, `p(b)`, `q(a)`, `q(b)`, `r`. Tools have at most one parameter.
The oracle shares no code with the library: it works on the parts from which the texts are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

from hypothesis import strategies as st

from weft.core.values import ToolSpec
from weft.planner.plan import Plan, PlanStep

CONSTANTS = ("a", "b")
State = frozenset[tuple[str, str]]
"""Pairs of a name and a constant; `r` has the constant ""."""


@dataclass(frozen=True)
class Atom:
    """A pattern: `term` is a constant, "{x}", "?y", "*", or "" for a fact without arguments."""

    name: str
    term: str
    negated: bool = False

    def __str__(self) -> str:
        return f"{'not ' * self.negated}{self.name}{f'({self.term})' if self.term else ''}"

    def facts(self, x: str, y: str) -> list[tuple[str, str]]:
        """The facts that it may stand for, with values of x and y."""
        named = {"{x}": [x], "?y": [y], "*": list(CONSTANTS)}
        return [(self.name, constant) for constant in named.get(self.term, [self.term])]


@dataclass(frozen=True)
class TinyTool:
    """A tool; `parameter`: it has the parameter x."""

    name: str
    needs: tuple[Atom, ...]
    makes: tuple[Atom, ...]
    fill: bool
    parameter: bool

    @property
    def spec(self) -> ToolSpec:
        names = ["x"] if self.parameter else []
        schema = {
            "type": "object",
            "properties": {name: {"enum": list(CONSTANTS)} for name in names},
            "required": names,
            "additionalProperties": False,
        }
        needs, makes = tuple(map(str, self.needs)), tuple(map(str, self.makes))
        return ToolSpec(self.name, "", schema, needs=needs, makes=makes, fill=self.fill)

    def can_run(self, state: State, x: str) -> bool:
        return any(all(_holds(need, state, x, y) for need in self.needs) for y in CONSTANTS)

    def run(self, state: State, x: str) -> State:
        lost = {fact for make in self.makes if make.negated for fact in make.facts(x, "")}
        made = {fact for make in self.makes if not make.negated for fact in make.facts(x, "")}
        return frozenset((state - lost) | made)


def _holds(need: Atom, state: State, x: str, y: str) -> bool:
    found = any(fact in state for fact in need.facts(x, y))
    return not found if need.negated else found


@dataclass(frozen=True)
class TinyWorld:
    """Tools, what holds at first, a plan of calls, and goals."""

    tools: tuple[TinyTool, ...]
    start: State
    calls: tuple[tuple[str, str], ...]
    goals: tuple[Atom, ...]

    @property
    def plan(self) -> Plan:
        named = {tool.name: tool for tool in self.tools}
        return Plan(
            tuple(
                PlanStep(number, name, {"x": x} if named[name].parameter else {})
                for number, (name, x) in enumerate(self.calls, 1)
            )
        )

    @property
    def facts(self) -> list[str]:
        return [f"{name}({constant})" if constant else name for name, constant in self.start]

    def tool(self, name: str) -> TinyTool:
        return next(tool for tool in self.tools if tool.name == name)

    def runs(self, calls: Sequence[tuple[str, str]]) -> bool:
        """Whether `calls` can be made one after the other, and the goals hold then."""
        state = self.start
        for name, x in calls:
            if not self.tool(name).can_run(state, x):
                return False
            state = self.tool(name).run(state, x)
        return self.reached(state)

    def reached(self, state: State) -> bool:
        return all(_holds(goal, state, "", "") for goal in self.goals)

    def can_be_filled(self) -> bool:
        """Whether calls to fill in make the plan run, by trying every world at every step."""
        fill = [(tool, x) for tool in self.tools if tool.fill for x in CONSTANTS]
        todo, seen = [(0, self.start)], {(0, self.start)}
        for done, state in todo:
            if done == len(self.calls) and self.reached(state):
                return True
            after = {(done, tool.run(state, x)) for tool, x in fill if tool.can_run(state, x)}
            if done < len(self.calls):
                name, x = self.calls[done]
                if self.tool(name).can_run(state, x):
                    after.add((done + 1, self.tool(name).run(state, x)))
            todo += after - seen
            seen |= after
        return False


def orders(plan: Plan, most: int = 200) -> Iterator[list[PlanStep]]:
    """Orders in which the steps of `plan` may run, up to `most`; all of small plans."""
    steps = {step.number: step for step in plan.steps}
    waiting = [(list[PlanStep](), frozenset(steps))]
    while waiting and most:
        done, left = waiting.pop()
        if not left:
            most -= 1
            yield done
        ready = [n for n in sorted(left) if left.isdisjoint(steps[n].needs)]
        waiting += [([*done, steps[number]], left - {number}) for number in ready]


_NEEDS = [Atom(name, term) for name in "pq" for term in ("a", "b", "?y", "*", "{x}")]
_NEEDS += [Atom(name, term, True) for name in "pq" for term in ("a", "*", "{x}")]
_NEEDS += [Atom("r", ""), Atom("r", "", True)]
_MAKES = [Atom(name, term) for name in "pq" for term in ("a", "b", "{x}")]
_MAKES += [Atom(name, term, True) for name in "pq" for term in ("b", "*", "{x}")]
_MAKES += [Atom("r", ""), Atom("r", "", True)]
_GOALS = [Atom(name, term, negated) for name in "pq" for term in "ab" for negated in (False, True)]
_GOALS += [Atom("q", "*"), Atom("p", "*", True), Atom("r", "", True)]


@st.composite
def tiny_worlds(draw: st.DrawFn) -> TinyWorld:
    """A world with two to four tools, a plan of up to three calls, and up to two goals."""
    tools = []
    for number in range(draw(st.integers(2, 4))):
        needs = tuple(draw(st.lists(st.sampled_from(_NEEDS), max_size=3, unique=True)))
        makes = tuple(draw(st.lists(st.sampled_from(_MAKES), min_size=1, max_size=3, unique=True)))
        parameter = any(atom.term == "{x}" for atom in (*needs, *makes))
        tools.append(TinyTool(f"tool{number}", needs, makes, draw(st.booleans()), parameter))
    facts = [(name, constant) for name in "pq" for constant in CONSTANTS] + [("r", "")]
    start = frozenset(draw(st.sets(st.sampled_from(facts))))
    names = st.sampled_from([tool.name for tool in tools])
    calls = draw(st.lists(st.tuples(names, st.sampled_from(CONSTANTS)), max_size=3))
    goals = draw(st.lists(st.sampled_from(_GOALS), max_size=2, unique=True))
    return TinyWorld(tuple(tools), start, tuple(calls), tuple(goals))


def all_orders(steps: Sequence[PlanStep]) -> Iterator[list[PlanStep]]:
    """Every permutation, for tests of `orders` itself."""
    yield from map(list, permutations(steps))
