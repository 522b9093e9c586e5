"""The symbolic searches of APR (arXiv 2504.15466): SoS+ in one trace, APR with sub-searches.

Each writes what it does, line by line; the models are trained to write the same.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Generator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations

from evals.reasoning.countdown import trace
from evals.reasoning.countdown.problem import Numbers, Problem, results
from evals.reasoning.countdown.trace import Node

SPAWN_CHANCE = 0.9
"""How often an expanded node's children are searched at once, rather than queued.

The paper's appendix says 0.1, its released script 0.9; with 0.1 traces do not fit its window.
"""

Messages = list[str | None]
"""What sub-searches return, in the order in which they were called; None for no solution."""


@dataclass(frozen=True, slots=True)
class Beams:
    """How many successors of a node are kept: by the search, and by its sub-searches.

    The published searches write those that are kept in random order and go on with the nearest.
    `listed`: they write them, and go on with them, in the order in which successors are listed,
    which a small model can learn: what it wrote last says what may come next.
    """

    main: int
    sub: int
    listed: bool = False


@dataclass(frozen=True, slots=True)
class Spawn:
    """A search that waits for sub-searches: what it wrote so far, and where each of them starts."""

    written: str
    nodes: tuple[Node, ...]


@dataclass(slots=True)
class Writing:
    """A trace as it grows."""

    start: Node
    beam: int
    listed: bool
    rng: random.Random
    text: str = ""
    goal: tuple[str, ...] | None = None

    def add(self, line: str) -> None:
        self.text += line

    def expand(self, node: Node) -> list[Node]:
        """Write down the node's best successors; hand back those to go on with, in order.

        Ends early, with `goal` set, at a single number that is the target.
        """
        successors = _successors(node.numbers)
        kept = sorted(successors, key=lambda s: distance(s[1], node.target))[: self.beam]
        if self.listed:
            kept.sort(key=successors.index)
        else:
            self.rng.shuffle(kept)
        children: list[Node] = []
        for step, numbers in kept:
            self.add(trace.exploring(step, numbers))
            child = node.child(len(children), numbers, step)
            if len(numbers) > 1:
                self.add(child.generated)
                children.append(child)
                continue
            self.add(trace.leaf(numbers[0], node.target))
            if numbers[0] == node.target:
                self.goal = child.steps
                break
        if self.listed:
            return children
        return sorted(children, key=lambda child: distance(child.numbers, child.target))

    def finish(self) -> str:
        """The trace with its end: the path to the goal once more, or that there is none."""
        if self.goal is None:
            self.add(f"{trace.NOTHING}\n")
        else:
            steps = self.goal[len(self.start.steps) :]
            self.add(trace.path(self.start.numbers, self.start.target, steps))
        return self.text


@dataclass(order=True, slots=True)
class _Waiting:
    distance: int
    order: int
    node: Node = field(compare=False)


@dataclass(slots=True)
class _Queue:
    """Nodes that wait to be expanded, the nearest to the target first, then the oldest."""

    heap: list[_Waiting] = field(default_factory=list)
    pushed: int = 0

    def push(self, nodes: list[Node]) -> None:
        for node in nodes:
            near = distance(node.numbers, node.target)
            heapq.heappush(self.heap, _Waiting(near, self.pushed, node))
            self.pushed += 1

    def pop(self) -> Node:
        return heapq.heappop(self.heap).node


def sos_plus(problem: Problem, beams: Beams, rng: random.Random) -> str:
    """The trace of SoS+ behind its opening lines: one sequence, sub-searches inlined."""
    writing = Writing(Node.root(problem), beams.main, beams.listed, rng)
    _inline(writing, writing.start, level=0)
    return writing.finish()


def _inline(writing: Writing, start: Node, level: int) -> None:
    queue, node = _Queue(), start
    while True:
        children = writing.expand(node)
        if writing.goal:
            return
        if children and writing.rng.random() < SPAWN_CHANCE:
            for child in children:
                writing.add(f"Start Sub Search at level {level + 1}: {child.opening}")
                _inline(writing, child, level + 1)
                if writing.goal:
                    return
                writing.add(f"Exit Sub Search at level {level + 1}: No Solution\n")
        else:
            queue.push(children)
        if not queue.heap:
            return
        node = queue.pop()
        writing.add(node.opening)


def sub_search(start: Node, beams: Beams, rng: random.Random) -> str:
    """The trace of one sub-search of APR behind its opening lines: best first, no sub-searches."""
    writing, queue, node = Writing(start, beams.sub, beams.listed, rng), _Queue(), start
    while True:
        queue.push(writing.expand(node))
        if writing.goal or not queue.heap:
            return writing.finish()
        node = queue.pop()
        writing.add(node.opening)


def apr(problem: Problem, beams: Beams, rng: random.Random) -> Generator[Spawn, Messages, str]:
    """The main search of APR behind its opening: yields where it spawns, is sent what came back.

    A spawn's `written` ends in the spawn block; behind it the trace goes on with the results in the
    block's place. Returns the whole trace, without any spawn block.
    """
    node, queue = Node.root(problem), _Queue()
    writing = Writing(node, beams.main, beams.listed, rng)
    while True:
        children = writing.expand(node)
        if len(children) > 1 and rng.random() < SPAWN_CHANCE:
            found = yield Spawn(writing.text + calling(children), tuple(children))
            writing.add(joined(children, found))
            for child, message in zip(children, found, strict=True):
                if message is not None and writing.goal is None:
                    writing.goal = (*child.steps, *trace.steps_in(message))
            if writing.goal:
                writing.add(trace.leaf(node.target, node.target))
        else:
            queue.push(children)
        if writing.goal or not queue.heap:
            return writing.finish()
        node = queue.pop()
        writing.add(node.opening)


def calling(nodes: list[Node]) -> str:
    """The spawn block: one line a sub-search."""
    lines = (
        f"<Start Sub Search {i} at level 1> {trace.MOVING}{node.id}\n"
        for i, node in enumerate(nodes)
    )
    return f"{trace.CALLING}\n{''.join(lines)}{trace.CALLING_END}\n"


def joined(nodes: list[Node], messages: Messages) -> str:
    """What stands in the place of the spawn block when the sub-searches have ended."""
    lines = []
    for i, (node, message) in enumerate(zip(nodes, messages, strict=True)):
        word = "No Solution" if message is None else "Goal Reached"
        lines.append(f"<{word} in Sub Search {i} at level 1 at Node #{node.id}>\n{message or ''}")
    return f"{trace.RESULTS}\n{''.join(lines)}{trace.RESULTS_END}\n"


def _successors(numbers: Numbers) -> list[tuple[str, Numbers]]:
    """Every step from these numbers, with what it leaves: the rest, and the result last."""
    return [
        (step, (*(n for k, n in enumerate(numbers) if k not in (i, j)), value))
        for i, j in combinations(range(len(numbers)), 2)
        for step, value in results(numbers[i], numbers[j])
    ]


def distance(numbers: Numbers, target: int) -> int:
    """How far from the target: the sum of each number's distance to the target's nearest factor."""
    return sum(min(abs(n - factor) for factor in _factors(target)) for n in numbers)


@lru_cache(maxsize=256)
def _factors(target: int) -> tuple[int, ...]:
    return tuple(f for f in range(2, target + 1) if target % f == 0)
