"""The ways of working that are compared: weft's agents, and published loops written anew."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from evals.planning.orchestration.loop import Loop
from evals.planning.orchestration.model import ScriptedModel
from evals.planning.orchestration.react_text import ReactText
from evals.planning.orchestration.script import Way
from evals.planning.orchestration.task import Task
from evals.planning.orchestration.tools import CannedTools
from weft.agents.agent import AgentOptions, run_agent
from weft.agents.loops import make_agent
from weft.core.ports import Clock, ModelRequest, complete
from weft.core.values import Message
from weft.planner.grammar.limits import Constrain
from weft.planner.prompt import plan_messages

Running = Callable[[Task, ScriptedModel, CannedTools, Clock], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class System:
    """`way`: what its model writes. `continuation`: its model goes on with unfinished answers."""

    way: Way
    run: Running
    continuation: bool = False


def _agent(name: str, constrain: Constrain = "never") -> Running:
    options = AgentOptions(rounds=64, calls=64, constrain=constrain, max_tokens=8192)

    async def run(task: Task, model: ScriptedModel, tools: CannedTools, clock: Clock) -> str:
        agent = make_agent(name, tools, model, options)
        return str((await run_agent(agent, task.question, clock=clock)).value())

    return run


async def _loop(task: Task, model: ScriptedModel, tools: CannedTools, _: Clock) -> str:
    loop = Loop(tools)
    await loop.streaming(model, _planning(task))
    return await _joined(task, model, loop)


async def _loop_batch(task: Task, model: ScriptedModel, tools: CannedTools, _: Clock) -> str:
    loop = Loop(tools)
    await loop.batch(model, _planning(task))
    return await _joined(task, model, loop)


def _planning(task: Task) -> ModelRequest:
    """The same prompt as weft's planner has, so that nothing but the scheduling differs."""
    return ModelRequest(plan_messages(task.question, [tool.spec for tool in task.tools]))


async def _joined(task: Task, model: ScriptedModel, loop: Loop) -> str:
    results = "\n".join(f"{number}. {json.dumps(one)}" for number, one in loop.results.items())
    told = f"Answer from the results.\nQuestion: {task.question}\n{results}"
    return _answer((await complete(model, ModelRequest((Message("user", told),)))).text)


async def _react_text(task: Task, model: ScriptedModel, tools: CannedTools, _: Clock) -> str:
    return await ReactText(model, tools).run(task.question)


def _answer(text: str) -> str:
    return text.rpartition("Answer: ")[2]


SYSTEMS: Final[Mapping[str, System]] = {
    "compiler": System("plan", _agent("compiler")),
    "compiler_text": System("published", _agent("compiler")),
    "compiler_line": System("plan", _agent("compiler", "line"), continuation=True),
    "divide": System("rounds", _agent("divide")),
    "parallel_react": System("rounds", _agent("parallel-react")),
    "react": System("turns", _agent("react")),
    "react_text": System("text", _react_text),
    "llmcompiler_loop": System("plan", _loop),
    "llmcompiler_loop_text": System("published", _loop),
    "llmcompiler_loop_batch": System("plan", _loop_batch),
}
