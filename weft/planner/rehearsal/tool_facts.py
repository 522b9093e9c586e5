"""What tools declare about facts: `needs` before a call, and what a call `makes`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.core.errors import BuildError
from weft.core.facts import Bindings, FactPattern, Parameter, Variable, numbered, parse_pattern
from weft.core.schema import mismatch
from weft.core.suggestion import suggestion
from weft.core.values import JsonSchema, ToolSpec
from weft.planner.signature import parameter_of, parameters_of, required_by

_ANY: Final = Variable()


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """The facts of a tool. `fill`: a rehearsal may add calls of it.

    A call first undoes its denied facts (`not at(*)`), and then makes the others.
    """

    spec: ToolSpec
    needs: tuple[FactPattern, ...]
    makes: tuple[FactPattern, ...]
    fill: bool

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters in its facts, in the order of the signature."""
        used = {hole for pattern in (*self.needs, *self.makes) for hole in pattern.holes}
        return tuple(name for name in parameters_of(self.spec) if Parameter(name) in used)


def tool_facts(spec: ToolSpec) -> ToolFacts | None:
    """The facts that `spec` declares; None where it declares none.

    Raises: `BuildError` for a malformed fact, an unknown parameter, a variable that nothing binds,
    and a tool to be filled in whose arguments no fact determines.
    """
    if not (spec.needs or spec.makes or spec.fill):
        return None
    needs, makes = _patterns(spec, "needs"), _patterns(spec, "makes")
    _check_variables(spec, needs, makes)
    found = ToolFacts(spec, numbered(needs), makes, spec.fill)
    if spec.fill:
        _check_fill(found)
    return found


def _patterns(spec: ToolSpec, key: str) -> tuple[FactPattern, ...]:
    texts: Sequence[str] = getattr(spec, key)
    patterns = []
    for text in texts:
        try:
            pattern = parse_pattern(text)
        except BuildError as error:
            raise _defect(spec, f"{key}: {error.message}", error.hint) from None
        for hole in pattern.holes:
            if isinstance(hole, Parameter):
                _check_parameter(spec, key, pattern, hole.name)
        patterns.append(pattern)
    return tuple(patterns)


def _check_parameter(spec: ToolSpec, key: str, pattern: FactPattern, name: str) -> None:
    try:
        parameter_of(spec, name)
    except LookupError:
        hint = suggestion(name, parameters_of(spec))
        raise _defect(spec, f"{key}: {pattern} has no parameter {name!r}", hint) from None


def _check_variables(
    spec: ToolSpec, needs: tuple[FactPattern, ...], makes: tuple[FactPattern, ...]
) -> None:
    for pattern in makes:
        allowed = {_ANY} if pattern.negated else set[Variable]()
        for hole in pattern.holes:
            if isinstance(hole, Variable) and hole not in allowed:
                hint = "name a parameter: {room}; * is for what a call undoes: not at(*)"
                raise _defect(spec, f"makes: {pattern} does not say what {hole} is", hint)
    bound = {hole for pattern in needs if not pattern.negated for hole in pattern.holes}
    for pattern in needs:
        for hole in pattern.holes if pattern.negated else ():
            if isinstance(hole, Variable) and hole != _ANY and hole not in bound:
                hint = f"use {hole} in another need, or write * for any"
                raise _defect(spec, f"needs: {pattern} does not say what {hole} is", hint)


def _check_fill(facts: ToolFacts) -> None:
    if not facts.makes:
        hint = "say what it makes, such as makes=['at({room})']"
        raise _defect(facts.spec, "it is to be filled in, and makes nothing", hint)
    for name in required_by(facts.spec):
        if name not in facts.parameters:
            hint = f"use {{{name}}} in needs or makes, or leave fill out"
            what = f"it is to be filled in, and no fact says what {name} is"
            raise _defect(facts.spec, what, hint)


def _defect(spec: ToolSpec, what: str, hint: str | None) -> BuildError:
    return BuildError(f"tool {spec.name}: {what}", hint=hint)


def declared_facts(tools: Sequence[ToolSpec]) -> Mapping[str, ToolFacts]:
    """The facts of all `tools` that declare some, by name. Raises: as `tool_facts`."""
    found = (tool_facts(spec) for spec in tools)
    return {facts.name: facts for facts in found if facts is not None}


def makers(
    wanted: FactPattern, tools: Iterable[ToolFacts]
) -> Iterator[tuple[ToolFacts, FactPattern, Bindings]]:
    """The tools that may make `wanted`: by which of their patterns, and for which parameters."""
    for facts in tools:
        for make in facts.makes:
            bindings = _unify(make, wanted)
            if bindings is not None:
                yield facts, make, bindings


def _unify(make: FactPattern, wanted: FactPattern) -> Bindings | None:
    same = (make.name, make.negated, len(make.terms))
    if same != (wanted.name, wanted.negated, len(wanted.terms)):
        return None
    found: dict[Parameter | Variable, str] = {}
    for made, constant in zip(make.terms, wanted.terms, strict=True):
        if not isinstance(constant, str) or made == _ANY:
            continue
        known = made if isinstance(made, str) else found.setdefault(made, constant)
        if known != constant:
            return None
    return found


def constant_of(value: Any) -> str | None:
    """The text of an argument in a fact; None for lists, objects and null."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, (bool, int, float)) else None


def argument_of(constant: str, schema: JsonSchema | None) -> str | int | float | bool | None:
    """The value of a parameter that `constant` stands for; None where none fits `schema`."""
    if mismatch({"const": constant}, schema) is None:
        return constant
    try:
        value = json.loads(constant)
    except ValueError:
        return None
    fits = constant_of(value) == constant and mismatch({"const": value}, schema) is None
    return value if fits and isinstance(value, (bool, int, float)) else None
