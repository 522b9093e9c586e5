"""The strings that the Countdown models are trained on: every call of a search is one of them.

Endless and fresh: the i-th problem of a seed is always the same, and none is of a test set.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from evals.reasoning.countdown.problem import Key, Problem, Range, problems
from evals.reasoning.countdown.search import Beams, apr, sos_plus, sub_search
from evals.reasoning.countdown.trace import Node, final_steps, message, steps_in

Kind = Literal["apr", "sos"]
Material = Literal["steps", "apr", "sos"]
"""What a model is trained on: bare steps of arithmetic, or the traces of one kind."""
TokenCount = Callable[[str], int]
Draws = Callable[[Node], random.Random]
"""What draws the coins and the order of a search, by the node that it starts at."""


SMALL: Final = Range(3, 20, 50)
"""Problems whose arithmetic a small model learns on one core."""
DEVELOPMENT_PROBLEMS: Final = 300


@dataclass(frozen=True, slots=True)
class Recipe:
    """What traces are drawn: of which problems, with which beams, how often with a condition.

    `bin_tokens` is what a SoS+ trace's length is rounded up to in its `Token Budget`.
    """

    within: Range = SMALL
    beams: tuple[int, ...] = (2, 3, 4, 5)
    sub_beam: int = 8
    listed: bool = False
    conditioned: float = 0.5
    bin_tokens: int = 64


@dataclass(frozen=True, slots=True)
class Solved:
    """One search: the strings of its calls, prompt and answer, and whether it found the way."""

    calls: tuple[str, ...]
    steps: tuple[str, ...] | None


def run_apr(problem: Problem, beams: Beams, draws: Draws, condition: str = "") -> Solved:
    """The strings of an APR search: its main calls, each before the children that it spawns."""
    root = Node.root(problem)
    opening, calls, main = condition + root.opening, [], apr(problem, beams, draws(root))
    try:
        spawn = next(main)
        while True:
            calls.append(opening + spawn.written)
            texts = [sub_search(node, beams, draws(node)) for node in spawn.nodes]
            calls += [n.opening + text for n, text in zip(spawn.nodes, texts, strict=True)]
            spawn = main.send([message(text) for text in texts])
    except StopIteration as end:
        steps = final_steps(end.value)
        return Solved((*calls, opening + end.value), None if steps is None else tuple(steps))


def run_sos_plus(problem: Problem, beams: Beams, rng: random.Random) -> Solved:
    """The one string of a SoS+ search."""
    written = sos_plus(problem, beams, rng)
    steps = final_steps(written)
    call = Node.root(problem).opening + written
    return Solved((call,), None if steps is None else tuple(steps))


def sub_call_budget(children: int) -> str:
    """The condition that asks APR for so many sub-searches a spawn."""
    return f"Sub Call Budget: {children} "


def token_budget(tokens: int) -> str:
    """The condition that asks SoS+ for a trace of at most so many tokens."""
    return f"Token Budget: {tokens} "


def development_problems(count: int = DEVELOPMENT_PROBLEMS) -> list[Problem]:
    """Problems that no shipped model was trained on, and on which its conditions were chosen.

    Not for the final test: see `training_record.unseen_problems`.
    """
    return list(problems(20, count, SMALL))


def training_texts(
    material: Material,
    recipe: Recipe,
    seed: int,
    count: int,
    without: Collection[Key],
    tokens: TokenCount,
) -> Iterator[str]:
    """The strings of `count` fresh problems, in the order of their searches."""
    rng = random.Random(f"{seed}:{material}")
    for problem in problems(seed, count, recipe.within, without):
        beam, named = rng.choice(recipe.beams), rng.random() < recipe.conditioned
        beams = Beams(beam, recipe.sub_beam, recipe.listed)
        if material == "apr":
            condition = sub_call_budget(beam) if named else ""
            yield from run_apr(problem, beams, lambda _: rng, condition).calls
        elif material == "steps":
            yield "".join(f"{step}\n" for step in explored(problem, beams, rng))
        else:
            (call,) = run_sos_plus(problem, beams, rng).calls
            width = recipe.bin_tokens
            yield (token_budget(-(-tokens(call) // width) * width) if named else "") + call


def explored(problem: Problem, beams: Beams, rng: random.Random) -> list[str]:
    """The different steps that an APR search of `problem` tries, in any order."""
    lines = "".join(run_apr(problem, beams, lambda _: rng).calls)
    steps = list(dict.fromkeys(steps_in(lines)))
    rng.shuffle(steps)
    return steps
