"""Facts about the world, such as `open(fridge)`, and patterns over them.

Reads and compares texts; what facts mean to a plan is in `weft.planner.rehearsal`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, NoReturn

from weft.core.errors import BuildError

MAX_TEXT: Final = 500
"""The most characters of one fact."""

_NAME: Final = re.compile(r"[^\W\d]\w*")
_PLAIN: Final = re.compile(r"[\w+\-][\w.+\-/:@]*")
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*+"')
_PARAMETER: Final = re.compile(r"\{\s*([^\W\d]\w*)\s*\}")
_VARIABLE: Final = re.compile(r"\?([^\W\d]\w*)")
_SPACE: Final = re.compile(r"\s*")
_NOT: Final = re.compile(r"not\s+(?=\S)")


@dataclass(frozen=True, slots=True, order=True)
class Fact:
    """A ground atom: a name and constant arguments, all of them text."""

    name: str
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return _atom(self.name, map(_constant, self.arguments))


@dataclass(frozen=True, slots=True)
class Parameter:
    """`{room}`: the argument of the tool's call."""

    name: str

    def __str__(self) -> str:
        return f"{{{self.name}}}"


@dataclass(frozen=True, slots=True)
class Variable:
    """`?place`: any constant, the same one wherever the name occurs; without a name `*`."""

    name: str = ""

    def __str__(self) -> str:
        return "*" if self.name[:1] in ("", "*") else f"?{self.name}"


Term = str | Parameter | Variable
Bindings = Mapping[Parameter | Variable, str]
"""Constants of parameters and variables. `Variable()` is never bound."""


@dataclass(frozen=True, slots=True)
class FactPattern:
    """An atom whose arguments may be parameters and variables; `negated`: no such fact holds."""

    name: str
    terms: tuple[Term, ...] = ()
    negated: bool = False

    def __str__(self) -> str:
        terms = (_constant(term) if isinstance(term, str) else str(term) for term in self.terms)
        return f"{'not ' if self.negated else ''}{_atom(self.name, terms)}"

    @property
    def holes(self) -> tuple[Parameter | Variable, ...]:
        """Its parameters and variables in order."""
        return tuple(term for term in self.terms if not isinstance(term, str))

    def bind(self, bindings: Bindings) -> FactPattern:
        """The pattern with constants for what is bound; the rest stays."""
        terms = (t if isinstance(t, str) else bindings.get(t, t) for t in self.terms)
        return FactPattern(self.name, tuple(terms), self.negated)

    def fact(self) -> Fact:
        """The fact, or its denial. Raises: `ValueError` unless all arguments are constants."""
        constants = tuple(term for term in self.terms if isinstance(term, str))
        if len(constants) < len(self.terms):
            raise ValueError(f"{self} is no single fact")
        return Fact(self.name, constants)

    def match(self, fact: Fact, bindings: Bindings) -> Bindings | None:
        """`bindings` with those that make the atom equal `fact`; None where nothing does."""
        if fact.name != self.name or len(fact.arguments) != len(self.terms):
            return None
        found = dict(bindings)
        for term, constant in zip(self.terms, fact.arguments, strict=True):
            if term == Variable():
                continue
            known = term if isinstance(term, str) else found.setdefault(term, constant)
            if known != constant:
                return None
        return found


def numbered(patterns: Sequence[FactPattern]) -> tuple[FactPattern, ...]:
    """`patterns` with a name of its own for each `*` that is not denied, so that it can be bound.

    No text has such a name.
    """
    names = count(1)
    return tuple(
        pattern
        if pattern.negated
        else FactPattern(
            pattern.name,
            tuple(Variable(f"*{next(names)}") if t == Variable() else t for t in pattern.terms),
        )
        for pattern in patterns
    )


def parse_fact(text: str) -> Fact:
    """The fact in `text`: `open(fridge)`, `at("living room", 3)`, `dark`.

    Raises: `BuildError` for anything else, also for patterns and denials.
    """
    pattern = parse_pattern(text)
    if pattern.negated:
        raise BuildError(
            f"{text!r:.100} is no fact: what is not listed does not hold",
            hint="leave it out, or list what holds instead",
        )
    if pattern.holes:
        hint = 'write constants; quote what is not plain: at("living room")'
        raise BuildError(f"{text!r:.100} is a pattern, not a fact", hint=hint)
    return pattern.fact()


def parse_pattern(text: str) -> FactPattern:
    """The pattern in `text`: `at({room})`, `not holding(*)`, `next(?here, {room})`.

    Raises: `BuildError` with the column of what is wrong.
    """
    if len(text) > MAX_TEXT:
        raise BuildError(f"the fact {text!r:.40} has more than {MAX_TEXT} characters")
    return _Parser(text).pattern()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def pattern(self) -> FactPattern:
        self._skip(_SPACE)
        negated = self._skip(_NOT) is not None
        name = self._skip(_NAME)
        if name is None or name[0] == "not":
            self._refuse("a name is expected")
        terms = tuple(self._terms())
        self._skip(_SPACE)
        if self._at < len(self._text):
            self._refuse("nothing may follow")
        return FactPattern(name[0], terms, negated)

    def _terms(self) -> Iterator[Term]:
        self._skip(_SPACE)
        if not self._take("("):
            return
        self._skip(_SPACE)
        while not self._take(")"):
            yield self._term()
            self._skip(_SPACE)
            if self._take(","):
                self._skip(_SPACE)
            elif not self._text.startswith(")", self._at):
                self._refuse("a comma or ) is expected")

    def _term(self) -> Term:
        if self._take("*"):
            return Variable()
        if found := self._skip(_PARAMETER):
            return Parameter(found[1])
        if found := self._skip(_VARIABLE):
            return Variable(found[1])
        if found := self._skip(_STRING):
            return self._string(found[0])
        found = self._skip(_PLAIN)
        if found is None:
            self._refuse("an argument is expected")
        return found[0]

    def _string(self, quoted: str) -> str:
        try:
            text = str(json.loads(quoted))
            text.encode()
        except ValueError:
            self._refuse(f"{quoted:.40} is no JSON string")
        return text

    def _skip(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found

    def _take(self, literal: str) -> bool:
        found = self._text.startswith(literal, self._at)
        self._at += len(literal) if found else 0
        return found

    def _refuse(self, what: str) -> NoReturn:
        ahead = self._text[self._at : self._at + 20]
        here = repr(ahead) if ahead else "the end"
        raise BuildError(
            f"{self._text!r:.100} is no fact: {what} in column {self._at + 1}, here is {here}",
            hint="write open(fridge), at({room}) or not holding(*); quote texts with spaces",
        )


def _atom(name: str, arguments: Iterator[str]) -> str:
    inside = ", ".join(arguments)
    return f"{name}({inside})" if inside else name


def _constant(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
