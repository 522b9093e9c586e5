"""Options of a rehearsal: what holds before the first step, and what is to hold after the last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.core.errors import BuildError
from weft.core.facts import Fact, FactPattern, Parameter, Variable, parse_fact, parse_pattern
from weft.core.suggestion import suggestion
from weft.planner.rehearsal.tool_facts import ToolFacts

STATES: Final = 10_000
"""The limit of states where none is set."""
MAX_FACTS: Final = 10_000


@dataclass(frozen=True, slots=True)
class RehearsalOptions:
    """How an agent rehearses a plan before the first call of it is made.

    facts   all that holds before the first step: `open(fridge)`. What is not listed does not hold
    goals   what has to hold after the last step: `at(apple, kitchen)`, `not open(*)`
    states  the most states in the search for missing steps

    Raises: `BuildError` for texts that are no facts, and for a limit below 1.
    """

    facts: Sequence[str] = ()
    goals: Sequence[str] = ()
    states: int = STATES
    world: frozenset[Fact] = field(init=False, repr=False, compare=False)
    wanted: tuple[FactPattern, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.states < 1:
            raise BuildError(f"a search needs at least one state, got {self.states}")
        if len(self.facts) > MAX_FACTS:
            hint = "list only what tools need or make"
            raise BuildError(f"{len(self.facts):,} facts are more than {MAX_FACTS:,}", hint=hint)
        object.__setattr__(self, "world", frozenset(map(parse_fact, _texts(self.facts, "facts"))))
        goals = [_goal(text) for text in _texts(self.goals, "goals")]
        object.__setattr__(self, "wanted", tuple(goals))


def _texts(given: Sequence[str], key: str) -> Sequence[str]:
    if isinstance(given, str):
        raise BuildError(f"`{key}` is one text, not a list", hint=f"write {key}=[{given!r:.60}]")
    written: list[object] = list(given)
    for text in written:
        if not isinstance(text, str):
            hint = "write facts as texts: 'at(kitchen)'"
            raise BuildError(f"`{key}` has {text!r:.60}, which is no text", hint=hint)
    return given


def _goal(text: str) -> FactPattern:
    pattern = parse_pattern(text)
    for hole in pattern.holes:
        if isinstance(hole, Parameter):
            hint = "write a constant, or * for any"
            raise BuildError(f"the goal {pattern} has the parameter {hole}, and no call", hint=hint)
        if pattern.negated and hole != Variable():
            raise BuildError(f"the goal {pattern} does not say what {hole} is", hint="write *")
    return pattern


def check_vocabulary(options: RehearsalOptions, declared: Mapping[str, ToolFacts]) -> None:
    """Check that facts, goals and tools speak of the same things.

    Raises: `BuildError` where no tool declares facts, where a goal is of a kind that no fact and no
    tool has, or where a fact has another number of arguments than in a tool.
    """
    if not declared:
        hint = "declare needs and makes: @weft.tool(needs=[...], makes=[...])"
        raise BuildError("there are facts or goals, and no tool declares any", hint=hint)
    sizes: dict[str, set[int]] = {}
    for facts in declared.values():
        for pattern in (*facts.needs, *facts.makes):
            sizes.setdefault(pattern.name, set()).add(len(pattern.terms))
    own = [FactPattern(fact.name, fact.arguments) for fact in sorted(options.world)]
    for pattern in (*own, *options.wanted):
        allowed = sizes.get(pattern.name)
        if allowed and len(pattern.terms) not in allowed:
            counts = " or ".join(map(str, sorted(allowed)))
            what = f"{pattern} has {len(pattern.terms)} arguments, and {counts} in the tools"
            raise BuildError(what, hint="write it as the tools do")
    known = {*sizes, *(pattern.name for pattern in own)}
    for pattern in options.wanted:
        if pattern.name not in known:
            hint = suggestion(pattern.name, sorted(known))
            raise BuildError(f"no tool makes the goal {pattern}, and no fact is like it", hint=hint)
