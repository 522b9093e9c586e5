"""Which tools fail, and how: drawn over all tools alike, the one that is wanted among them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final, get_args

from evals.planning.healing.scenario import Case, Scenario
from evals.planning.healing.workshop import Fault
from weft.planner.routing import ToolGraph

SHARES: Final = (0.05, 0.1, 0.2, 0.4)
"""Of the tools of a graph, at least one tool."""
SEED: Final = 20261123
_KINDS: Final[tuple[Fault, ...]] = get_args(Fault)


def drawn_faults(graph: ToolGraph, share: float, rng: random.Random) -> dict[str, Fault]:
    """So many tools, each subset as likely as any other; each fails in a way of its own.

    Knows neither routes nor goals.
    """
    names = sorted(graph.tools)
    failing = rng.sample(names, max(1, round(share * len(names))))
    return {name: rng.choice(_KINDS) for name in failing}


def scenarios(
    name: str, draw_case: Callable[[random.Random], Case], count: int
) -> Iterator[Scenario]:
    """The same `count` cases with each of `SHARES`; none is left out."""
    for number in range(count):
        case = draw_case(random.Random(f"{SEED} {name} {number}"))
        for share in SHARES:
            rng = random.Random(f"{SEED} {name} {number} {share}")
            yield Scenario(name, share, case, drawn_faults(case.graph, share, rng))
