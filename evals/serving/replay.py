"""Plays a trace to a system, open loop, and keeps what happened. Judges nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from evals.serving.programs import Call, Ids, Program, ancestors
from evals.serving.server import Counters
from weft.core.ports import ModelRequest, Sampling


@dataclass(slots=True)
class Record:
    """What one system did with one trace. Times in seconds from the start of the trace.

    `outputs` are the answers that arrived in full, by program and call; `chosen` what each race
    took.
    """

    started_s: float
    done_s: dict[str, float] = field(default_factory=dict)
    outputs: dict[tuple[str, str], Ids] = field(default_factory=dict)
    chosen: dict[tuple[str, str], str] = field(default_factory=dict)

    def finished(self, program: Program) -> None:
        """`program` has its result now."""
        self.done_s[program.id] = asyncio.get_running_loop().time() - self.started_s


class System(Protocol):
    """A way of running programs against a server."""

    async def run(self, program: Program, record: Record) -> None:
        """Run `program`, tell `record` when it has its result, and return when nothing is left."""

    async def aclose(self) -> None:
        """Let go of connections."""


class Counting(Protocol):
    """A server that can be brought to rest and read."""

    async def clean(self) -> Counters:
        """Wait until nothing runs, forget all cached prefixes, and return the counters."""


@dataclass(frozen=True, slots=True)
class Played:
    """A trace played to a system: the programs, what was recorded, and what the server counted."""

    trace: Sequence[Program]
    record: Record
    counted: Counters

    @property
    def latencies_s(self) -> Mapping[str, float]:
        """By program, from its arrival until its result."""
        return {p.id: self.record.done_s[p.id] - p.arrival_s for p in self.trace}

    @property
    def makespan_s(self) -> float:
        """Until the last result."""
        return max(self.record.done_s.values())

    @property
    def used_tokens(self) -> int:
        """Tokens written for the results: not those of losers or of aborted calls."""
        return sum(map(self._used, self.trace))

    @property
    def backlog(self) -> int:
        """Programs without their result when the last one arrived."""
        last = max(program.arrival_s for program in self.trace)
        return sum(done > last for done in self.record.done_s.values())

    def _used(self, program: Program) -> int:
        needed = ancestors(program)[program.result] | {program.result}
        return sum(
            call.max_tokens
            for call in program.calls
            if call.name in needed and not self._lost(program, call)
        )

    def _lost(self, program: Program, call: Call) -> bool:
        races = (step for step in program.steps if (program.id, step.name) in self.record.chosen)
        return any(
            call.name in race.after and self.record.chosen[program.id, race.name] != call.name
            for race in races
        )


async def play(trace: Sequence[Program], system: System, server: Counting) -> Played:
    """Start every program at its time, whatever the others do; return when all have ended.

    The server starts with an empty prefix cache.
    """
    before = await server.clean()
    loop = asyncio.get_running_loop()
    record = Record(loop.time())

    async def one(program: Program) -> None:
        await asyncio.sleep(record.started_s + program.arrival_s - loop.time())
        await system.run(program, record)

    try:
        async with asyncio.TaskGroup() as group:
            for program in trace:
                group.create_task(one(program))
    finally:
        await system.aclose()
    return Played(trace, record, (await server.clean()).since(before))


def request(call: Call, prompt: Ids) -> ModelRequest:
    """A greedy request that writes exactly as many tokens as `call` declares."""
    return ModelRequest(
        prompt_token_ids=prompt,
        sampling=Sampling(max_tokens=call.max_tokens, temperature=0.0),
        extra={"ignore_eos": True},
    )
