"""Programs as most frameworks run them: each ready call is sent at once, first come, first served.

Knows nothing of priorities or prefixes. Uses the same model client and as many connections as weft.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from evals.serving.programs import Call, First, Ids, Program, Step, Tool
from evals.serving.replay import Record, request
from weft.core.ports import ModelClient, complete

_Tasks = Mapping[str, "asyncio.Task[Ids]"]


class Plain:
    """Runs each program as asyncio tasks. `cancel`: the losers of a race are cancelled.

    Without it they write to their end and nobody waits for them, which is what a framework does
    whose cancellation does not reach the server.
    """

    def __init__(self, model: ModelClient, *, cancel: bool) -> None:
        self._model = model
        self._cancel = cancel

    async def run(self, program: Program, record: Record) -> None:
        tasks: dict[str, asyncio.Task[Ids]] = {}
        async with asyncio.TaskGroup() as group:
            for step in program.steps:
                work = self._step(program, step, tasks, record)
                tasks[step.name] = group.create_task(work)
            await tasks[program.result]
            record.finished(program)

    async def aclose(self) -> None:
        await self._model.aclose()

    async def _step(self, program: Program, step: Step, tasks: _Tasks, record: Record) -> Ids:
        match step:
            case First():
                winner = await _first(program, step, tasks)
                record.chosen[program.id, step.name] = winner
                if self._cancel:
                    for name in step.after:
                        tasks[name].cancel()
                return tasks[winner].result()
            case Tool():
                await asyncio.wait([tasks[name] for name in step.after])
                await asyncio.sleep(step.seconds)
                return step.result
            case Call():
                outputs = {name: await tasks[name] for name in step.after}
                answer = await complete(self._model, request(step, step.ids(outputs)))
                record.outputs[program.id, step.name] = answer.token_ids
                return answer.token_ids


async def _first(program: Program, race: First, tasks: _Tasks) -> str:
    """The call that ended first with a valid answer."""
    valid = {call.name for call in program.calls if call.valid}
    waiting = {tasks[name]: name for name in race.after}
    while True:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for name in [waiting.pop(task) for task in done]:
            if name in valid:
                return name
