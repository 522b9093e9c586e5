"""Gives the arguments that a model wrote without names the names of the tool's parameters."""

from __future__ import annotations

from dataclasses import replace

from weft.core.errors import PlanError
from weft.core.values import ToolSpec
from weft.planner.plan import Step
from weft.planner.signature import parameters_of
from weft.planner.text.calls import Call


def named(call: Call, tool: ToolSpec | None) -> Step:
    """The step of `call` with all arguments named, in the order of the parameters of `tool`.

    Adds their places to those of `call`.

    Raises: `PlanError` when there are more arguments than parameters, or one is given twice.
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


def _error(call: Call, index: int, what: str, names: tuple[str, ...]) -> PlanError:
    line, column = call.places[f"={index}"]
    takes = f"; {call.step.tool} takes {', '.join(names)}" if names else ""
    return PlanError(
        f"argument {index + 1} {what}",
        line=line,
        column=column,
        step=call.step.number,
        hint=f"name the arguments: {call.step.tool}(name=value){takes}",
    )
