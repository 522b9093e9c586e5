"""What a perfect model would write for a task: plans, turns, rounds and answers. Knows no agent."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Literal

from evals.planning.orchestration.react_text import write_action
from evals.planning.orchestration.task import Call, Task, levels, work_out
from evals.planning.orchestration.thought import thought
from weft.core.ports import ModelRequest
from weft.core.values import ToolCall, ToolSpec
from weft.planner.text.writer import write, write_value


@dataclass(frozen=True, slots=True)
class Style:
    """How many tokens a model thinks: before calls, before an answer, before and after its plan.

    Each case has the means of the examples that LLMCompiler's repository publishes for its ReAct
    baseline and its joiner (`configs/*/gpt_prompts.py`), counted by the rule here. weft's planner
    is told to write nothing but the plan; `published`: LLMCompiler's thoughts before and after.
    With `steps` the planner also thinks for so many tokens for each step: before the step, or, if
    `ahead`, before the plan.
    """

    calls: int
    answer: int
    plan: int = 0
    join: int = 0
    steps: int = 0
    ahead: bool = False
    published: tuple[int, int] = (0, 8)


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the model: `text` as it is, else a thought with calls or with an answer.

    After `stall_after` lines nothing comes for `stall_s` seconds.
    """

    text: str = ""
    thought: str = ""
    calls: tuple[Call, ...] = ()
    answer: str | None = None
    stall_after: int = 0
    stall_s: float = 0.0

    def spoken(self, request: ModelRequest) -> str:
        """The text of this turn in the form that `request` asks for: native, JSON, or lines."""
        if self.text:
            return self.text
        if request.tools:
            return " ".join(part for part in (self.thought, self.answer) if part)
        if request.schema is not None:
            return json.dumps({"thought": self.thought, "next": self._next(request)})
        lines = [f"Thought: {self.thought}"] if self.thought else []
        lines += [
            f"Call: {json.dumps({'name': call.tool, 'arguments': call.arguments})}"
            for call in self.calls
        ]
        lines += [f"Answer: {self.answer}"] if self.answer is not None else []
        return "\n".join(lines)

    def called(self, request: ModelRequest) -> tuple[ToolCall, ...]:
        """The calls of this turn, where `request` takes them natively."""
        if not request.tools:
            return ()
        return tuple(
            ToolCall(f"call_{call.number}", call.tool, json.dumps(call.arguments))
            for call in self.calls
        )

    def _next(self, request: ModelRequest) -> dict[str, object]:
        if self.answer is not None:
            return {"answer": self.answer}
        calls = [{"name": call.tool, "arguments": call.arguments} for call in self.calls]
        single = '"calls"' not in json.dumps(request.schema)
        return {"call": calls[0]} if single else {"calls": calls}


Way = Literal["plan", "published", "rounds", "turns", "text"]


def script(task: Task, way: Way, style: Style) -> tuple[Turn, ...]:
    """The turns of an agent that plans, that works in rounds, or that makes call after call.

    "published" is a plan as LLMCompiler spells it, "text" call after call as ReAct does: both are
    shorter than weft's spelling.
    """
    last = Turn(thought=thought(style.answer), answer=task.answer)
    if way == "plan":
        return Turn(plan_text(task, style)), last
    if way == "published":
        return Turn(published_text(task, style)), last
    calls = work_out(task)
    if way == "text":
        specs = {tool.spec.name: tool.spec for tool in task.tools}
        return *(Turn(_as_text(call, specs[call.tool], style)) for call in calls), last
    rounds = levels(task.plan.steps) if way == "rounds" else [[call.number] for call in calls]
    by_number = {call.number: call for call in calls}
    turns = [
        Turn(thought=thought(style.calls), calls=tuple(by_number[number] for number in group))
        for group in rounds
    ]
    return *turns, last


def plan_text(task: Task, style: Style) -> str:
    """The gold plan as weft's planner writes it, with its thoughts."""
    before = style.plan + (style.steps * len(task.plan.steps) if style.ahead else 0)
    each = 0 if style.ahead else style.steps
    first, *others = task.plan.steps
    steps = [replace(first, thought=thought(before + each))]
    steps += [replace(step, thought=thought(each)) if each else step for step in others]
    return write(replace(task.plan, steps=tuple(steps), thought=thought(style.join)))


def published_text(task: Task, style: Style) -> str:
    """The gold plan without names of parameters and results, with LLMCompiler's own thoughts."""
    before, after = style.published
    ordered = {
        tool.spec.name: list(tool.spec.parameters.get("properties", {})) for tool in task.tools
    }
    lines = [f"Thought: {thought(before)}"] if before else []
    for step in task.plan.steps:
        lines += [f"Thought: {step.thought}"] if step.thought else []
        named = list(step.arguments) != ordered[step.tool][: len(step.arguments)]
        arguments = ", ".join(
            f"{name}={write_value(value)}" if named else write_value(value)
            for name, value in step.arguments.items()
        )
        lines.append(f"{step.number}. {step.tool}({arguments})")
    lines += [f"Thought: {thought(after)}"] if after else []
    return "\n".join([*lines, f"{len(task.plan.steps) + 1}. join()", ""])


def _as_text(call: Call, spec: ToolSpec, style: Style) -> str:
    before = f"Thought: {thought(style.calls)}\n" if style.calls else ""
    return before + write_action(call.tool, call.arguments, spec)
