"""Parses one line of a plan as a step or as the join. Syntax only, no schemas."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, get_args

from weft.planner.plan import Operator, PlanLimits, PlanStep, Ref, StepCondition, Value, refs_in
from weft.planner.text.lines import PLAIN, QUOTED, PlanCursor, PlanLine
from weft.planner.text.values import ValueParser, string

_IS: Final = r"\s*+[=:](?!=)\s*+"
_PLAIN_KEY: Final = re.compile(rf"({PLAIN}){_IS}")
_QUOTED_KEY: Final = re.compile(rf"(?={QUOTED}{_IS})")
_IS_NEXT: Final = re.compile(_IS)
_EACH: Final = re.compile(r"for\s++(?:each\s++)?+(?:\$?item\s++in\s++)?+")
_IF: Final = re.compile(r"if\b\s*+")
_NOT: Final = re.compile(r"not\b\s*+")
_AFTER: Final = re.compile(r"after\b\s*+")
_COMMENT: Final = re.compile(r"#(.*)")
_OPERATORS: Final = sorted((word for word in get_args(Operator) if word), key=len, reverse=True)
_OPERATOR: Final = re.compile("|".join(re.escape(word) for word in _OPERATORS if word != "not"))


@dataclass(slots=True)
class ParsedCall:
    """A parsed step: its unnamed arguments apart, and the positions of its parts.

    `places`: see `weft.planner.check.Places`; an unnamed argument has its number from 0.
    """

    step: PlanStep
    positional: list[Value] = field(default_factory=list)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)


def call(line: PlanLine, thought: str, limits: PlanLimits) -> ParsedCall:
    """The step in `line`. A comment after it is added to its `thought`.

    Raises: `PlanError` at the position of a syntax error.
    """
    return _CallParser(line, limits).call(thought)


def join(line: PlanLine, limits: PlanLimits) -> tuple[Ref, ...]:
    """The references of the join in `line`.

    Raises: `PlanError` at the position of anything else.
    """
    return _CallParser(line, limits).join()


class _CallParser:
    def __init__(self, line: PlanLine, limits: PlanLimits) -> None:
        self._line = line
        self._cursor = PlanCursor(line.text, at=line.at, line=line.line, step=line.number)
        self._values = ValueParser(self._cursor, limits.depth)

    def call(self, thought: str) -> ParsedCall:
        line, cursor = self._line, self._cursor
        assert line.number is not None
        places: dict[str, tuple[int, int]] = {}
        tool = self._tool(places)
        positional, arguments = self._arguments(places)
        over, when, after = self._over(places), self._when(places), self._after(places)
        remark = cursor.match(_COMMENT)
        if cursor.at < len(line.text):
            raise cursor.error(
                f"after the call stands {cursor.ahead()}",
                "only `for each $1`, `if $1 > 0` and `after $1` may follow, in this order, and one"
                " call is in one line",
            )
        thought = "\n".join(part for part in (thought, remark[1].strip() if remark else "") if part)
        step = PlanStep(line.number, tool, arguments, over, when, thought, line.line, after)
        return ParsedCall(step, positional, places)

    def join(self) -> tuple[Ref, ...]:
        cursor = self._cursor
        positional, named = self._arguments({})
        results = [*positional, *named.values()]
        if not all(
            isinstance(result, Ref) and isinstance(result.source, int) for result in results
        ):
            raise cursor.error(
                "join takes references to steps only", "such as join($1, $3.total)", self._line.at
            )
        return tuple(results)

    def _tool(self, places: dict[str, tuple[int, int]]) -> str:
        """The name of the tool, without quotes."""
        line, cursor = self._line, self._cursor
        cursor.at = line.text.rindex(line.name, 0, line.at)
        places["tool"] = cursor.place()
        name = string(cursor) if cursor.peek() == '"' else line.name
        cursor.at = line.at
        return name

    def _arguments(
        self, places: dict[str, tuple[int, int]]
    ) -> tuple[list[Value], dict[str, Value]]:
        cursor = self._cursor
        positional: list[Value] = []
        named: dict[str, Value] = {}
        cursor.space()
        while not cursor.take(")"):
            start = cursor.at
            name = self._key()
            if name is None and named:
                raise cursor.error("an argument without a name follows one with a name", at=start)
            if name in named:
                raise cursor.error(f"the argument {name!r} is given twice", at=start)
            places[f"={len(positional) if name is None else name}"] = cursor.place(start)
            value = self._values.value()
            if name is None:
                positional.append(value)
            else:
                named[name] = value
            self._comma()
        return positional, named

    def _key(self) -> str | None:
        """The name of the next parameter, with the sign after it, if there is one."""
        cursor = self._cursor
        if plain := cursor.match(_PLAIN_KEY):
            return plain[1]
        if cursor.match(_QUOTED_KEY) is None:
            return None
        name = string(cursor)
        cursor.match(_IS_NEXT)
        return name

    def _comma(self) -> None:
        cursor = self._cursor
        cursor.space()
        if not cursor.take(",") and cursor.peek() != ")":
            raise cursor.error(
                f"a comma or ) is expected, here is {cursor.ahead()}",
                'write tool(first="text", second=3), quotes in a text as \\"; nothing is computed',
            )
        cursor.space()

    def _over(self, places: dict[str, tuple[int, int]]) -> Ref | None:
        cursor = self._cursor
        cursor.space()
        start = cursor.at
        if not cursor.match(_EACH):
            return None
        places["for"] = cursor.place(start)
        return self._values.reference()

    def _when(self, places: dict[str, tuple[int, int]]) -> StepCondition | None:
        cursor = self._cursor
        cursor.space()
        start = cursor.at
        if not cursor.match(_IF):
            return None
        places["if"] = cursor.place(start)
        if cursor.match(_NOT):
            condition = StepCondition(self._values.reference(), "not")
        else:
            condition = self._comparison()
        cursor.space()
        return condition

    def _after(self, places: dict[str, tuple[int, int]]) -> tuple[int, ...]:
        cursor = self._cursor
        cursor.space()
        start = cursor.at
        if not cursor.match(_AFTER):
            return ()
        places["after"] = cursor.place(start)
        numbers = {self._waited_for()}
        cursor.space()
        while cursor.take(","):
            cursor.space()
            numbers.add(self._waited_for())
            cursor.space()
        return tuple(sorted(numbers))

    def _waited_for(self) -> int:
        cursor = self._cursor
        start = cursor.at
        ref = self._values.reference()
        if not isinstance(ref.source, int) or ref.path:
            raise cursor.error("`after` takes whole steps", "such as after $1, $2", start)
        return ref.source

    def _comparison(self) -> StepCondition:
        cursor = self._cursor
        ref = self._values.reference()
        cursor.space()
        found = cursor.match(_OPERATOR)
        if found is None:
            return StepCondition(ref)
        cursor.space()
        start = cursor.at
        literal = self._values.value()
        if next(refs_in(literal), None) is not None:
            raise cursor.error("a condition compares a reference with a literal", at=start)
        operator: Operator = next(word for word in get_args(Operator) if word == found[0])
        return StepCondition(ref, operator, literal)
