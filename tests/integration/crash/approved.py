"""Random agents whose tools need approval, in a process that may be killed; public names only."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import weft
from weft.errors import InputError, UnknownReference
from weft.testing import FakeModel, Reply, call_tool

LOOPS = ("react", "parallel-react", "compiler", "divide")
SMALL = 10
"""`pay` needs no approval up to this amount."""
Moment = Literal["asked", "calling", "called", "append", "appended"]
MOMENTS: tuple[Moment, ...] = ("asked", "calling", "called", "append", "appended")
Effect = Literal["once", "idempotent"]
DURABILITIES: tuple[Literal["sync", "async", "exit"], ...] = ("sync", "sync", "async", "exit")
JOURNAL = "journal.sqlite"


@dataclass
class Death:
    """Kills this process at the `number`-th (from 1) `moment`, or after `delay_s`."""

    moment: Moment | None = None
    number: int = 0
    delay_s: float | None = None

    def begin(self) -> None:
        if self.delay_s is not None:
            timer = threading.Timer(self.delay_s, _die)
            timer.daemon = True
            timer.start()

    def at(self, moment: Moment) -> None:
        if moment == self.moment:
            self.number -= 1
            if self.number == 0:
                _die()


_HERE: ContextVar[tuple[Part, str, Any]] = ContextVar("here")
"""The part and the run whose tools are called, and a second connection to its journal."""
_SCRIPT: ContextVar[Callable[[Any], Reply]] = ContextVar("script")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Entry:
    """A line of the ledger: a call of a tool, and how many records of its run came before."""

    run: str
    tool: str
    arguments: dict[str, Any]
    effect: str
    records: int
    key: str


@dataclass(frozen=True)
class End:
    """How a part of a run ended, with the nodes of the calls that a person has to judge."""

    run: str
    status: str
    asking: Sequence[str] = ()
    unsettled: Sequence[str] = ()
    reasons: Sequence[str] = ()

    @property
    def is_final(self) -> bool:
        return self.status != "asking" and not self.unsettled


@dataclass(frozen=True)
class Part:
    """What one process does: go on with `runs` until each has ended, asks, or it is killed.

    `later`: how often a person answers a question only later. `past`: how the runs ended before.
    """

    folder: Path
    runs: Sequence[str]
    seed: int
    death: Death = field(default_factory=Death)
    later: float = 0.25
    past: Mapping[str, End] = field(default_factory=dict)

    def carry_out(self) -> None:
        self.death.begin()
        asyncio.run(_all_runs(self))


def add_line(path: Path, line: object) -> None:
    """Append a line of JSON that outlives this process and its machine."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(file, f"{json.dumps(line)}\n".encode())
    os.fsync(file)
    os.close(file)


def lines(path: Path) -> Iterator[Any]:
    """The lines of a file that `add_line` has written."""
    if path.exists():
        yield from map(json.loads, path.read_text().splitlines())


async def _all_runs(part: Part) -> None:
    journal = weft.open_journal(part.folder / JOURNAL)
    append: Callable[..., None] = journal.append

    def dying(*given: Any, **named: Any) -> None:
        part.death.at("append")
        append(*given, **named)
        part.death.at("appended")

    setattr(journal, "append", dying)  # noqa: B010 - a method of a port
    reader = weft.open_journal(part.folder / JOURNAL)
    try:
        async with asyncio.TaskGroup() as group:
            for run in part.runs:
                group.create_task(_go_on(part, run, journal, reader))
    finally:
        reader.close()
        journal.close()


async def _go_on(part: Part, run: str, journal: Any, reader: Any) -> None:
    draw, own = random.Random(f"{part.seed} {run}"), random.Random(run)
    _HERE.set((part, run, reader))
    _SCRIPT.set(_Script(run, draw))
    first: Effect = own.choice(("once", "idempotent"))
    flow = flow_of(own.choice(LOOPS), first)
    answer = _person(part, draw)
    past = part.past.get(run, End(run, "new"))
    for _ in range(draw.randrange(20)):  # the runs of a process do not begin together
        await asyncio.sleep(0)
    said = {node: _decision(draw, {}) for node in past.asking if draw.random() < 0.5}
    begun: dict[str, Any] = {"journal": journal, "answer": answer, "answers": said}
    try:
        going = _resumed(flow, run, _judged(part, past, reader), begun)
    except UnknownReference:
        durability = own.choice(DURABILITIES)
        work = {"work": f"Do what is due for {run}."}
        going = flow.start(work, run=run, questions="pause", durability=durability, **begun)
    if going is None:  # it was killed before it could say so
        add_line(part.folder / "ends", [run, "succeeded"])
        return
    result = await going.wait()
    asking = [question.node for question in result.questions]
    unsettled = [call.node for call in result.unsettled]
    reasons = list(result.reasons)
    add_line(part.folder / "ends", [run, result.status, asking, unsettled, reasons])


def _resumed(
    flow: weft.Flow, run: str, judged: Mapping[str, weft.Confirmation], begun: dict[str, Any]
) -> weft.FlowRun | None:
    """The run, to be continued; None: it has succeeded."""
    try:
        return flow.resume(run, confirmed=judged, **begun)
    except InputError as error:
        used = ("needs a confirmation", "cannot be changed")
        if judged and any(words in str(error) for words in used):
            return _resumed(flow, run, {}, begun)  # an earlier part has used the person's word
        if "has succeeded" in str(error):
            return None
        raise


def _judged(part: Part, past: End, reader: Any) -> dict[str, weft.Confirmation]:
    """What a person says who looks into the ledger for calls nobody knows the end of."""
    if not past.unsettled:
        return {}
    made = [entry for entry in entries(part.folder) if entry.run == past.run]
    words = {}
    for node in past.unsettled:
        sure = any(
            entry.tool == record.tool and entry.arguments == record.arguments
            for entry in made
            for _, _, record in reader.records(past.run)
            if type(record).__name__ == "ToolCalled" and record.node == node
        )
        words[node] = weft.Confirmation("done", "done") if sure else weft.Confirmation("repeat")
    return words


def entries(folder: Path) -> list[Entry]:
    """The ledger: all calls of tools that may need an approval."""
    return [Entry(*line) for line in lines(folder / "ledger")]


def _person(part: Part, draw: random.Random) -> Callable[[weft.PendingQuestion], Any]:
    async def answer(question: weft.PendingQuestion) -> Any:
        part.death.at("asked")
        for _ in range(draw.choice((0, 1, 5, 40))):
            await asyncio.sleep(0)
        if draw.random() < part.later:
            return None
        return _decision(draw, question.arguments)

    return answer


def _decision(draw: random.Random, arguments: Mapping[str, Any]) -> Any:
    """Yes, no with a reason, or yes with other arguments."""
    kind = draw.random()
    if kind < 0.25:
        return draw.choice((False, {"approve": False, "reason": "not today"}))
    if kind < 0.45 and "key" in arguments:
        changed = {"key": arguments["key"], "amount": draw.randrange(200)}
        return {"approve": True, "arguments": changed}
    return draw.choice((True, {"approve": True}))


def _act(tool: str, effect: str, key: str, amount: int) -> str:
    part, run, reader = _HERE.get()
    part.death.at("calling")
    once = weft.idempotency_key() or "" if effect == "idempotent" else ""
    named = {"key": key, "amount": amount}
    line = [run, tool, named, effect, reader.summary(run).records, once]
    add_line(part.folder / "ledger", line)
    part.death.at("called")
    return f"{tool} {key}"


@weft.tool(pure=True)
async def look(key: str) -> int:
    """Look up an amount."""
    return sum(key.encode()) % 40


def _tools(first: Effect, second: Effect) -> list[weft.Tool[..., Any]]:
    @weft.tool(approve=True, effect=first)
    async def transfer(key: str, amount: int) -> str:
        """Move money."""
        return _act("transfer", first, key, amount)

    @weft.tool(approve=lambda call: call["amount"] > SMALL, effect=second)
    async def pay(key: str, amount: int) -> str:
        """Pay; small amounts need nobody."""
        return _act("pay", second, key, amount)

    return [look, transfer, pay]


@cache
def flow_of(loop: str, first: Effect) -> weft.Flow:
    """An agent whose `transfer` has the effect `first`, and whose `pay` has the other one."""
    flow = weft.Flow("agents", models={"m": FakeModel(lambda request: _SCRIPT.get()(request))})
    work = flow.input("work", str)
    answer = flow.model(
        "m",
        work,
        tools=_tools(first, "idempotent" if first == "once" else "once"),
        agent={"loop": loop, "rounds": 3, "calls": 6},
        name="agent",
    )
    flow.output(answer=answer)
    return flow


class _Script:
    """Random replies in the format of a request. A model asked again need not say the same."""

    def __init__(self, run: str, draw: random.Random) -> None:
        self._draw = draw
        self._run = run
        self._number = itertools.count()
        self._made: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, request: Any) -> Reply:
        schema = json.dumps(request.schema) if request.schema else ""
        goes_on = self._draw.random() < 0.6 or len(request.messages) <= 2
        if request.tools:
            if request.tool_choice == "none" or not goes_on:
                return Reply("done")
            return Reply(tool_calls=tuple(call_tool(n, **a) for n, a in self._calls()))
        if '"calls"' in schema and goes_on:
            calls = [{"name": name, "arguments": given} for name, given in self._calls()]
            return _next(calls=calls)
        if '"call"' in schema and goes_on:
            name, given = self._call()
            return _next(call={"name": name, "arguments": given})
        if '"replan"' in schema and self._draw.random() < 0.4:
            return _next(replan="more is due")
        return _next(answer="done") if schema else Reply(self._plan(request))

    def _calls(self) -> list[tuple[str, dict[str, Any]]]:
        return [self._call() for _ in range(self._draw.randint(1, 3))]

    def _call(self) -> tuple[str, dict[str, Any]]:
        if self._made and self._draw.random() < 0.1:
            return self._draw.choice(self._made)  # a model repeats itself
        key = f"{self._run}-{next(self._number)}-{self._draw.randrange(100_000)}"
        name = self._draw.choice(("look", "transfer", "transfer", "pay", "pay"))
        if name == "look":
            return name, {"key": key}
        amount: Any = self._draw.choice((3, 8, 20, 90, "much" if self._draw.random() < 0.2 else 5))
        self._made.append((name, {"key": key, "amount": amount}))
        return self._made[-1]

    def _plan(self, request: Any) -> str:
        steps, looks = [], list[int]()
        told = re.search(r"go on with (\d+)", request.messages[-1].content)
        first = int(told[1]) if told else 1
        for number in range(first, first + self._draw.randint(1, 3)):
            name, given = self._call()
            written = {key: json.dumps(value) for key, value in given.items()}
            if "amount" in written and looks and self._draw.random() < 0.5:
                written["amount"] = f"${looks[-1]}"
            looks += [number] * (name == "look")
            arguments = ", ".join(f"{key}={value}" for key, value in written.items())
            steps.append(f"{number}. {name}({arguments})")
        last = first + len(steps)
        return "\n".join([*steps, f"{last}. join(${last - 1})", ""])


def _next(**following: Any) -> Reply:
    return Reply(json.dumps({"thought": "", "next": following}))
