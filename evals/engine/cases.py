"""The graphs every system runs: plain descriptions of tasks. Knows no system."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import shake_256
from typing import Final, Literal

Shape = Literal["chain", "fanout", "dag", "map", "conversation"]
Message = list[str]
ROLES: Final = ("user", "assistant")
MESSAGE_CHARACTERS: Final = 519


@dataclass(frozen=True, slots=True)
class Task:
    """One node: `parents` are places of earlier tasks; it sleeps `sleep_s` seconds, 0: not at all.

    `name` is also a Python identifier, since one of the systems makes functions of it.
    """

    name: str
    parents: tuple[int, ...] = ()
    sleep_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Case:
    """A graph, its tasks in topological order.

    `shape` tells a system which of its own idioms fits:

    chain         one after the other
    fanout        a source, then every branch, then a join
    dag           a source (first) and a sink (last)
    map           the same task for every item of a list
    conversation  a chain whose state is a list of messages, to which each task adds two
    """

    name: str
    shape: Shape
    tasks: tuple[Task, ...]

    @property
    def sleeps(self) -> bool:
        """True when the tasks take time of their own."""
        return any(task.sleep_s for task in self.tasks)

    def children(self) -> list[list[int]]:
        """For each task, the places of the tasks that wait for it."""
        found: list[list[int]] = [[] for _ in self.tasks]
        for place, task in enumerate(self.tasks):
            for parent in task.parents:
                found[parent].append(place)
        return found


class Tally:
    """The body of every node in every system: counts itself, so that skipped work is noticed."""

    def __init__(self) -> None:
        self.done = 0

    async def work(self, sleep_s: float) -> None:
        """Do what a task does, which is nothing or a sleep."""
        self.done += 1
        if sleep_s:
            await asyncio.sleep(sleep_s)


TALLY: Final = Tally()
"""Counts the work of this process, whichever system does it."""


def two_messages(talk: int, turn: int) -> list[Message]:
    """What is said in a turn of a conversation: nothing of it is said anywhere else."""
    return [[role, said(talk, turn, role)] for role in ROLES]


def said(talk: int, turn: int, role: str) -> str:
    """One message. It does not repeat itself, so that compressing it saves less than half."""
    return shake_256(f"{talk} {turn} {role}".encode()).hexdigest(260)[:MESSAGE_CHARACTERS]


def chain(name: str, length: int) -> Case:
    """`length` tasks, one after the other."""
    tasks = [Task("n0"), *(Task(f"n{i}", (i - 1,)) for i in range(1, length))]
    return Case(name, "chain", tuple(tasks))


def fanout(name: str, width: int) -> Case:
    """A source, `width` branches that wait for it, and a join that waits for all of them."""
    branches = [Task(f"n{i}", (0,)) for i in range(1, width + 1)]
    join = Task(f"n{width + 1}", tuple(range(1, width + 1)))
    return Case(name, "fanout", (Task("n0"), *branches, join))


def layered(name: str, nodes: int, layers: int = 100, seed: int = 1) -> Case:
    """`nodes` tasks: a source, `layers` layers, a sink.

    Every task of a layer waits for random tasks of the layer before, three at most where layers
    are equally wide, and every task is waited for.
    """
    draw = random.Random(seed)
    share, rest = divmod(nodes - 2, layers)
    tasks = [Task("n0")]
    before = [0]
    for layer in range(layers):
        width = share + (layer < rest)
        parents = [
            set(draw.sample(before, draw.randint(0, min(2, len(before))))) for _ in range(width)
        ]
        sure = draw.sample(before, len(before))
        for turn in range(max(width, len(before))):
            parents[turn % width].add(sure[turn % len(before)])
        start = len(tasks)
        tasks += [Task(f"n{start + i}", tuple(sorted(own))) for i, own in enumerate(parents)]
        before = list(range(start, len(tasks)))
    tasks.append(Task(f"n{len(tasks)}", tuple(before)))
    return Case(name, "dag", tuple(tasks))


def skewed(name: str = "skewed") -> Case:
    """One task of 500 ms beside a chain of five of 100 ms, then a join: ideally 0.50 s."""
    slow = Task("slow", (0,), 0.5)
    quick = [Task(f"quick{i}", (0 if i == 0 else i + 1,), 0.1) for i in range(5)]
    return Case(name, "dag", (Task("start"), slow, *quick, Task("join", (1, 6))))


def mapped(name: str, items: int) -> Case:
    """The same task for each of `items` items, none of which waits for another."""
    return Case(name, "map", tuple(Task(f"n{i}") for i in range(items)))


def conversation(name: str, turns: int) -> Case:
    """`turns` tasks, one after the other, each of which adds two messages to a list."""
    return Case(name, "conversation", chain(name, turns).tasks)


_SIZED: Final[dict[str, Callable[[str, int], Case]]] = {
    "chain": chain,
    "fanout": fanout,
    "layered": layered,
    "map": mapped,
    "conversation": conversation,
}
CASES: Final = (
    "chain_100",
    "fanout_100",
    "fanout_1000",
    "map_1000",
    "skewed",
    "conversation_50",
    "layered_10000",
)


def case_named(name: str) -> Case:
    """The case of that name: `skewed`, or a shape and a size such as `chain_100`."""
    shape, _, size = name.partition("_")
    return skewed() if name == "skewed" else _SIZED[shape](name, int(size))
