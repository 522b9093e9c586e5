"""Parses a plan while it is written: a step is available once its line is complete."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from weft.core.errors import PlanError
from weft.core.values import JsonSchema, ToolSpec
from weft.planner.check import check_form, check_results, check_step, tool_of
from weft.planner.plan import LIMITS, Plan, PlanLimits, PlanStep, Ref
from weft.planner.signature import parameters_of
from weft.planner.text import calls
from weft.planner.text.calls import ParsedCall
from weft.planner.text.lines import JOIN, PLAIN, LineSplitter, PlanLine


def name_arguments(call: ParsedCall, tool: ToolSpec | None) -> PlanStep:
    """The step of `call` with all arguments named, in the order of the parameters of `tool`.

    Adds their positions to those of `call`.

    Raises: `PlanError` for more arguments than parameters, or a duplicate.
    """
    if not call.positional:
        return call.step
    names = () if tool is None else tuple(parameters_of(tool))
    arguments = {}
    for index, value in enumerate(call.positional):
        if index == len(names):
            raise _error(call, index, "is one too many" if names else "has no name", names)
        if names[index] in call.step.arguments:
            raise _error(call, index, f"gives {names[index]} a second time", names)
        arguments[names[index]] = value
        call.places[f"={names[index]}"] = call.places[f"={index}"]
    return replace(call.step, arguments={**arguments, **call.step.arguments})


def _error(call: ParsedCall, index: int, what: str, names: tuple[str, ...]) -> PlanError:
    line, column = call.places[f"={index}"]
    takes = f"; {call.step.tool} takes {', '.join(names)}" if names else ""
    return PlanError(
        f"argument {index + 1} {what}",
        line=line,
        column=column,
        step=call.step.number,
        hint=f"name the arguments: {call.step.tool}(name=value){takes}",
    )


_FENCE: Final = "```"
# Probably meant as a call, but unreadable as one: without a number, or inside `quotes`.
_LOST_CALL: Final = re.compile(rf"\W*+(?:[Ss]tep\s++)?+[0-9]*+\W*+(?P<name>{PLAIN})\s*+\(")


class PlanReader:
    """Parses the text of a plan in pieces of any size; gives its steps and then the plan.

    `tools` are those that may be called; None checks the syntax only. `known` has the result
    schemas of earlier rounds' steps that may be referred to, by number; None: unknown. The plan is
    within `limits`.
    """

    def __init__(
        self,
        tools: Sequence[ToolSpec] | None = None,
        *,
        known: Mapping[int, JsonSchema | None] | None = None,
        limits: PlanLimits = LIMITS,
    ) -> None:
        self._tools = None if tools is None else tuple(tools)
        self._known = dict(known or {})
        self._limits = limits
        # Bytes that are not UTF-8 become lone surrogates, which are errors at their position.
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._lines = LineSplitter(limits)
        self._steps: list[PlanStep] = []
        self._thought: list[str] = []
        self._results: tuple[Ref, ...] | None = None
        self._failed: PlanError | None = None

    @property
    def complete(self) -> bool:
        """Whether the join has been read; any text after it is ignored."""
        return self._results is not None

    @property
    def steps(self) -> tuple[PlanStep, ...]:
        """All steps so far, also those before an error."""
        return tuple(self._steps)

    @property
    def thought(self) -> str:
        """The thought since the last step."""
        return "\n".join(self._thought)

    @property
    def known(self) -> Mapping[int, JsonSchema | None]:
        """The result schemas of all steps that may be referred to now, by number."""
        return dict(self._known)

    def feed(self, piece: str | bytes) -> tuple[PlanStep, ...]:
        """The steps that `piece` (text, or its UTF-8 bytes) completed.

        Raises: `PlanError` at the first defect, and again at every later call. The steps before it
        are in `steps`.
        """
        if self._failed is not None:
            raise self._failed
        before = len(self._steps)
        try:
            if not self.complete:
                self._read(piece)
        except PlanError as error:
            self._failed = error
            raise
        return tuple(self._steps[before:])

    def close(self) -> Plan:
        """The plan, once the text has ended.

        Raises: `PlanError` when it ended before its join, or what `feed` raised.
        """
        if self._failed is not None:
            raise self._failed
        if not self.complete:
            self._end()
        assert self._results is not None
        return Plan(self.steps, self._results, self.thought)

    def _read(self, piece: str | bytes) -> None:
        if isinstance(piece, bytes):
            text = self._decoder.decode(piece)
        else:
            text = self._decoder.decode(b"", final=True) + piece
        for line in self._lines.cut(text):
            self._take(line)
            if self.complete:
                return

    def _end(self) -> None:
        try:
            self._read("")
            rest = self._lines.rest()
            if rest is not None:
                self._take(rest)
            raise self._lines.error(
                "the plan ends without its join line",
                hint=f"the last line names what answers the question: {self._next()}. {JOIN}($1)",
            )
        except PlanError as error:
            self._failed = error
            raise

    def _take(self, line: PlanLine) -> None:
        if line.kind == "thought":
            self._think(line)
        elif line.kind == "call":
            self._step(line)
        else:
            results = calls.join(line, self._limits)
            if self._tools is not None:
                check_results(results, self._known, line.line)
            self._results = results

    def _think(self, line: PlanLine) -> None:
        text = line.text.lstrip()
        if text.startswith("#"):
            self._thought.append(text[1:].removeprefix(" "))
            return
        text = text.rstrip()
        lost = _LOST_CALL.match(text)
        if lost and any(tool.name == lost["name"] for tool in self._tools or ()):
            raise PlanError(
                f"the call of {lost['name']} is no step",
                line=line.line,
                hint=f"a step is `{self._next()}. {lost['name']}(...)`, and a remark begins with #",
            )
        if text and not text.startswith(_FENCE):
            self._thought.append(text)

    def _step(self, line: PlanLine) -> None:
        call = calls.call(line, self.thought, self._limits)
        tool = None if self._tools is None else tool_of(call.step, self._tools, call.places)
        step = name_arguments(call, tool)
        last = self._steps[-1].number if self._steps else max(self._known, default=0)
        check_form(step, last, len(self._steps), self._limits, call.places)
        if self._tools is not None:
            self._known[step.number] = check_step(step, self._tools, self._known, call.places)
        self._steps.append(step)
        self._thought.clear()

    def _next(self) -> int:
        return max([step.number for step in self._steps] or [0, *self._known]) + 1


def read(
    text: str | bytes,
    tools: Sequence[ToolSpec] | None = None,
    *,
    known: Mapping[int, JsonSchema | None] | None = None,
    limits: PlanLimits = LIMITS,
) -> Plan:
    """Parse the plan in `text`; see `PlanReader`. Raises: `PlanError`."""
    reader = PlanReader(tools, known=known, limits=limits)
    reader.feed(text)
    return reader.close()
