"""Writes a plan as canonical text, as prompts show and grammars allow it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

from weft.core.errors import PlanError
from weft.planner.plan import Plan, PlanStep, Ref, Value
from weft.planner.text.lines import JOIN

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN_TOOL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")


def write(plan: Plan) -> str:
    """The text of `plan`; reading it gives `plan` again.

    Raises: `PlanError` for values that are not JSON and texts that are not Unicode.
    """
    lines = [line for step in plan.steps for line in (*_thought(step.thought), write_step(step))]
    results = ", ".join(write_ref(ref) for ref in plan.results)
    numbers = [0, *(step.number for step in plan.steps)]
    numbers += [ref.source for ref in plan.results if isinstance(ref.source, int)]
    lines += [*_thought(plan.thought), f"{max(numbers) + 1}. {JOIN}({results})"]
    return _unicode("\n".join(lines) + "\n")


def write_step(step: PlanStep) -> str:
    """The line of one step, without thought and newline.

    Raises: `PlanError`, as `write` does.
    """
    try:
        arguments = ", ".join(
            f"{parameter_name(name)}={write_value(value)}" for name, value in step.arguments.items()
        )
        over = f" for each {write_ref(step.over)}" if step.over is not None else ""
        call = f"{step.number}. {tool_name(step.tool)}({arguments})"
        line = f"{call}{over}{_condition(step)}{_after(step)}"
        return _unicode(line)
    except PlanError as error:
        raise PlanError(error.message, line=step.line, step=step.number) from None


def write_value(value: Value) -> str:
    """`value` as JSON in one line, with references.

    Raises: `PlanError` for what is not JSON.
    """
    match value:
        case Ref():
            return write_ref(value)
        case None | bool() | str():
            return json.dumps(value, ensure_ascii=False)
        case int() | float() if math.isfinite(value):
            return json.dumps(value)
        case Mapping() if all(isinstance(name, str) for name in value):
            members = (f"{_quoted(name)}: {write_value(item)}" for name, item in value.items())
            return f"{{{', '.join(members)}}}"
        case list() | tuple():
            return f"[{', '.join(write_value(item) for item in value)}]"
        case _:
            raise PlanError(f"a plan holds JSON and references; {value!r:.60} is neither")


def write_ref(ref: Ref) -> str:
    """A reference such as `$3.prices[0]`."""
    return f"${ref.source}{path_text(ref.path)}"


def path_text(path: Sequence[str | int]) -> str:
    """The path to a part of a result: `.prices[0]`; names that are not plain as `["a b"]`."""
    return "".join(
        f".{step}"
        if isinstance(step, str) and _PLAIN.fullmatch(step)
        else f"[{_quoted(step) if isinstance(step, str) else step}]"
        for step in path
    )


def tool_name(name: str) -> str:
    """A tool's name as written: quoted where it could be read otherwise."""
    return name if _PLAIN_TOOL.fullmatch(name) and name != JOIN else _quoted(name)


def parameter_name(name: str) -> str:
    """A parameter's name as written: quoted where it is not plain."""
    return name if _PLAIN.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _condition(step: PlanStep) -> str:
    match step.when:
        case None:
            return ""
        case condition if condition.operator == "":
            return f" if {write_ref(condition.ref)}"
        case condition if condition.operator == "not":
            return f" if not {write_ref(condition.ref)}"
        case condition:
            literal = write_value(condition.literal)
            return f" if {write_ref(condition.ref)} {condition.operator} {literal}"


def _after(step: PlanStep) -> str:
    return f" after {', '.join(f'${number}' for number in step.after)}" if step.after else ""


def _thought(thought: str) -> list[str]:
    return [f"# {line}" for line in thought.split("\n")] if thought else []


def _unicode(text: str) -> str:
    """`text` itself. Raises: `PlanError` for a lone surrogate, which cannot be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PlanError("a text holds half a character") from None
    return text
