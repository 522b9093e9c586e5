"""Each program is run and recorded once, and its other concurrencies are predicted and then run.

`error` is the distance of the predicted from the real wall time, as a share of the real one.
`computed` competes for cores, which a simulation knows nothing of: it stands by itself.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from evals.engine.rows import Lookup, Row
from evals.reasoning.report import Target
from evals.simulation.programs import PROGRAMS
from weft.core.events import Event
from weft.durability.simulate import Change, recording, simulate
from weft.engine import Graph, Run, RunOptions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RECORDED: Final = 8
OTHERS: Final = (1, 2, 4, 16)
TARGETS: Final = (Target("all", "weft", "median_error", 0.1, at_most=True),)
_APART: Final = "computed"


def rows(quick: bool) -> list[dict[str, Any]]:
    """All rows."""
    return [asdict(row) for row in _rows(quick)]


def _rows(quick: bool) -> Iterator[Row]:
    errors: list[float] = []
    for name, program in PROGRAMS.items():
        for seed in range(1 if quick else 3):
            print(f"fidelity: {name}, seed {seed}", file=sys.stderr, flush=True)
            _, events = asyncio.run(_run(program(seed), RECORDED))
            recorded = recording(events)
            for slots in OTHERS:
                real_s, _ = asyncio.run(_run(program(seed), slots))
                predicted_s = simulate(recorded, Change(workers=slots)).wall_s
                error = abs(predicted_s - real_s) / real_s
                case = f"{name}_{slots}" if seed == 0 else f"{name}_{slots}_{seed}"
                yield Row(case, "real", "wall_s", real_s, "s")
                yield Row(case, "weft", "wall_s", predicted_s, "s")
                yield Row(case, "weft", "error", error, "share")
                if name != _APART:
                    errors.append(error)
    yield Row("all", "weft", "median_error", median(errors), "share")
    yield Row("all", "weft", "worst_error", max(errors), "share")
    yield Row("all", "weft", "runs", len(errors), "runs")


async def _run(graph: Graph, slots: int) -> tuple[float, list[Event]]:
    events: list[Event] = []
    result = await Run(graph, RunOptions(max_concurrency=slots), listeners=[events.append]).wait()
    return result.wall_s, events


def panel(axes: Axes, figures: Lookup) -> None:
    """Predicted over real wall times."""
    cases = [f"{name}_{slots}" for name in PROGRAMS for slots in OTHERS]
    pairs = [(figures(case, "real", "wall_s"), figures(case, "weft", "wall_s")) for case in cases]
    known = [(real, told) for real, told in pairs if real is not None and told is not None]
    axes.plot(*zip(*known, strict=True), "o", alpha=0.6)
    longest = max(max(pair) for pair in known)
    axes.plot([0, longest], [0, longest], "--", color="grey", linewidth=1)
    axes.set_xlabel("real wall time, s")
    axes.set_ylabel("predicted, s")
    axes.set_title(f"recorded with {RECORDED} slots, run with {', '.join(map(str, OTHERS))}")
