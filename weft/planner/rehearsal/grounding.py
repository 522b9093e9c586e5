"""The calls that a rehearsal may fill in, with all arguments.

Two bounds keep them few: a call has to make something that a step, a goal or another such call
needs (backward relevance), and its own needs have to be within reach if nothing is ever undone
(forward reachability). Both are the usual preparation of a planner: see Hoffmann and Nebel, "The FF
Planning System" (2001).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any, Final

from weft.core.facts import Bindings, FactPattern, Parameter
from weft.core.schema.keywords import listed
from weft.planner.rehearsal.tool_facts import ToolFacts, argument_of, constant_of, makers
from weft.planner.rehearsal.world import World, open_terms
from weft.planner.signature import parameters_of

MAX_CALLS: Final = 20_000
"""The most calls that are considered for one plan."""


_TRUTH: Final = ("true", "false")


class TooManyCalls(Exception):
    """More than `MAX_CALLS` calls could be filled in."""


@dataclass(frozen=True, slots=True)
class GroundCall:
    """A call of a tool, and constants for the variables of its needs."""

    facts: ToolFacts
    bindings: Bindings

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the call, as values that fit their schemas."""
        schemas = parameters_of(self.facts.spec)
        return {
            name: argument_of(self.bindings[Parameter(name)], schemas[name])
            for name in self.facts.parameters
        }


def relevant_calls(
    tools: Sequence[ToolFacts], wanted: Iterable[FactPattern]
) -> dict[tuple[str, frozenset[tuple[Any, str]]], tuple[ToolFacts, Bindings]]:
    """Tools, each with known parameters, that may make something `wanted`, directly or not."""
    found: dict[tuple[str, frozenset[tuple[Any, str]]], tuple[ToolFacts, Bindings]] = {}
    open_patterns = [open_terms(pattern) for pattern in wanted]
    seen = set(open_patterns)
    while open_patterns:
        for facts, make, bindings in makers(open_patterns.pop(), tools):
            found[facts.name, frozenset(bindings.items())] = facts, bindings
            # What a call undoes need not be made first, only to be undone.
            undone = replace(make, negated=not make.negated)
            needs = [need.bind(bindings) for need in facts.needs if need != undone]
            needed = {open_terms(need) for need in needs} - seen
            seen |= needed
            open_patterns += sorted(needed, key=str)
    return found


def ground_calls(
    world: World,
    tools: Sequence[ToolFacts],
    wanted: Iterable[FactPattern],
    constants: Sequence[str],
) -> tuple[GroundCall, ...]:
    """The calls that may help to make what is `wanted`, beginning from `world`.

    Everything that they make is added to `world`. A parameter that no positive need binds takes the
    values of its `enum`, or all `constants`.

    Raises: `TooManyCalls`.
    """
    relevant = relevant_calls(tools, wanted)
    values = _ParameterValues(constants)
    found: dict[tuple[str, frozenset[tuple[Any, str]]], GroundCall] = {}
    before = -1
    while before < len(world):
        before = len(world)
        for facts, known in relevant.values():
            every = _bindings(world, facts, known, values)
            for bindings in list(islice(every, MAX_CALLS + 1)):
                key = facts.name, frozenset(bindings.items())
                if key in found:
                    continue
                if len(found) == MAX_CALLS:
                    raise TooManyCalls
                found[key] = GroundCall(facts, bindings)
                for make in facts.makes:
                    if not make.negated:
                        world.add(make.bind(bindings).fact())
    return tuple(found.values())


def _bindings(
    world: World, facts: ToolFacts, known: Bindings, values: _ParameterValues
) -> Iterator[Bindings]:
    """All complete bindings of the calls of a tool whose positive needs match facts."""
    positive = [need for need in facts.needs if not need.negated]
    for count, bound in enumerate(world.join(positive, known)):
        if count > MAX_CALLS:
            raise TooManyCalls
        parameters = [Parameter(name) for name in facts.parameters]
        if not all(values.fits(facts, one, bound[one]) for one in parameters if one in bound):
            continue
        free = [one for one in parameters if one not in bound]
        for chosen in product(*(values.of(facts, one) for one in free)):
            yield {**bound, **dict(zip(free, chosen, strict=True))}


class _ParameterValues:
    """The constants that parameters may have."""

    def __init__(self, constants: Sequence[str]) -> None:
        self._constants = constants
        self._fits: dict[tuple[str, str, str], bool] = {}

    def fits(self, facts: ToolFacts, parameter: Parameter | Any, constant: str) -> bool:
        """Whether `constant` stands for a value that the schema of `parameter` allows."""
        key = facts.name, parameter.name, constant
        if key not in self._fits:
            schema = parameters_of(facts.spec)[parameter.name]
            self._fits[key] = argument_of(constant, schema) is not None
        return self._fits[key]

    def of(self, facts: ToolFacts, parameter: Parameter) -> list[str]:
        """All constants of `parameter`."""
        stated = listed(parameters_of(facts.spec)[parameter.name] or {})
        texts = [*self._constants, *_TRUTH] if stated is None else map(constant_of, stated)
        fitting = [text for text in texts if text and self.fits(facts, parameter, text)]
        return list(dict.fromkeys(fitting))
