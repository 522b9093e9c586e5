"""LLMCompiler's published scheduling loop, written anew: what it waits for, and when it looks.

Kim et al., "An LLM Compiler for Parallel Function Calling" (arXiv 2312.04511), as the published
code does it (commit a00c9d3): the planner's tasks come through a queue; with streaming the loop
waits for the next of them before it starts whatever is ready; when the last has come, or without
streaming, it looks every 10 ms. A call that raises never ends, for the loop.

Knows nothing of prompts. Values keep their types here, which the original turns into text.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from evals.planning.orchestration.task import resolved
from weft.core.ports import ModelClient, ModelRequest, TextDelta, ToolRunner
from weft.planner.plan import Plan, PlanStep, Ref
from weft.planner.text.reader import PlanReader

INTERVAL_S = 0.01
"""How long the published loop sleeps when there is nothing to start."""

_JOIN = "join"


class Loop:
    """One run of one plan. `results` has what each step came to, by number."""

    def __init__(self, tools: ToolRunner) -> None:
        self._tools = tools
        self._remaining: dict[int, PlanStep] = {}
        self._done: dict[int, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.results: dict[int, Any] = {}

    async def streaming(self, model: ModelClient, request: ModelRequest) -> Plan:
        """Run a plan while it is written; the plan, when all its steps have ended."""
        queue: asyncio.Queue[PlanStep | None] = asyncio.Queue()
        planner = asyncio.create_task(_plan(model, request, self._tools, queue))
        try:
            await self._schedule_streaming(queue)
            return await planner
        finally:
            planner.cancel()
            self._stop()

    async def batch(self, model: ModelClient, request: ModelRequest) -> Plan:
        """Run a plan when it has been written."""
        queue: asyncio.Queue[PlanStep | None] = asyncio.Queue()
        try:
            plan = await _plan(model, request, self._tools, queue)
            for step in plan.steps:
                self._add(step)
            self._add(_join(plan))
            while not self._all_done():
                self._start_ready()
                await asyncio.sleep(INTERVAL_S)
            return plan
        finally:
            self._stop()

    async def _schedule_streaming(self, queue: asyncio.Queue[PlanStep | None]) -> None:
        more = True
        while True:
            if more:
                step = await queue.get()
                if step is None:
                    more = False
                else:
                    self._add(step)
            if self._start_ready():
                continue
            if not more and self._all_done():
                return
            await asyncio.sleep(INTERVAL_S)

    def _add(self, step: PlanStep) -> None:
        self._remaining[step.number] = step
        self._done[step.number] = asyncio.Event()

    def _start_ready(self) -> bool:
        """Start every step whose needs are met; whether there was one."""
        ready = [
            step
            for step in self._remaining.values()
            if all(number in self._done and self._done[number].is_set() for number in step.needs)
        ]
        for step in ready:
            del self._remaining[step.number]
            task = asyncio.create_task(self._run(step))
            self._tasks.add(task)
        return bool(ready)

    async def _run(self, step: PlanStep) -> None:
        if step.tool != _JOIN:
            arguments = resolved(step.arguments, self.results)
            self.results[step.number] = await self._tools.call(step.tool, arguments)
        self._done[step.number].set()

    def _all_done(self) -> bool:
        return all(event.is_set() for event in self._done.values())

    def _stop(self) -> None:
        """Own what the original leaves behind: calls that nobody waits for any more."""
        for task in self._tasks:
            task.cancel()
            if task.done() and not task.cancelled():
                task.exception()  # the loop never asks for it


async def _plan(
    model: ModelClient,
    request: ModelRequest,
    tools: ToolRunner,
    queue: asyncio.Queue[PlanStep | None],
) -> Plan:
    """The plan that the model writes; its steps and its join go into `queue` line by line."""
    reader = PlanReader(tools.specs())
    try:
        async with aclosing(model.generate(request)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    for step in reader.feed(event.text):
                        await queue.put(step)
        plan = reader.close()
        await queue.put(_join(plan))
    finally:
        await queue.put(None)
    return plan


def _join(plan: Plan) -> PlanStep:
    """The join as the loop sees it: one more task, which needs all the others and does nothing."""
    numbers = [step.number for step in plan.steps]
    return PlanStep(max(numbers, default=0) + 1, _JOIN, {"all": tuple(Ref(n) for n in numbers)})
