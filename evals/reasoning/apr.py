"""APR against its sequential twin: two small models, equally trained, in equal windows.

The weights in `countdown/weights` are trained by `python -m evals.reasoning.countdown.train`. Both
run through weft's local engine and runtime, greedily, and one strict verifier judges both.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, Final

from evals.engine.rows import Lookup, Row
from evals.intervals import paired_difference
from evals.planning.effort import Effort, Skipped
from evals.reasoning.countdown.measuring import (
    SIDE_BY_SIDE,
    Solved,
    rows_of,
    share_rows,
    solve_all,
)
from evals.reasoning.countdown.problem import Problem
from evals.reasoning.countdown.sequences import (
    DEVELOPMENT_PROBLEMS,
    Kind,
    development_problems,
    token_budget,
)
from evals.reasoning.countdown.training_record import (
    TEST_PROBLEMS,
    TEST_SEED,
    TrainingRecord,
    unseen_problems,
)
from evals.reasoning.report import Target
from weft.serving.local.model import LocalModel
from weft.serving.local.options import LocalOptions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WEIGHTS: Final = Path(__file__).parent / "countdown" / "weights"
CASE: Final = "countdown3_unseen"
DEVELOPMENT: Final = "countdown3_development"
WINDOWS: Final = (192, 224, 256, 288)
SAMPLES: Final = 3


@dataclass(frozen=True, slots=True)
class System:
    """A model, the condition that stands before a problem, and the settings of the protocol."""

    kind: Kind
    condition: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)


SYSTEMS: Final[Mapping[str, System]] = {
    "apr": System("apr"),
    **{f"apr_children_{n}": System("apr", settings={"children": n}) for n in (3, 5)},
    "sos": System("sos"),
    **{f"sos_budget_{n}": System("sos", token_budget(n)) for n in (192, 320)},
}
CHOSEN: Final[Mapping[Kind, str]] = {"apr": "apr_children_3", "sos": "sos"}
"""The best condition of each on the development problems: chosen before the test was drawn."""
TARGETS: Final = (
    Target(CASE, "apr", "points_over_twin_low", 0.0),
    Target(CASE, CHOSEN["apr"], "points_over_twin_low", 0.0),
    Target(CASE, CHOSEN["apr"], "points_over_best_twin_low", 0.0),
)

Outcomes = Mapping[str, Sequence[Solved]]
"""By system: what came of each problem, in the order of the test."""


async def run(effort: Effort) -> list[Row]:
    """The test set and the development problems, 30 of each in a hurry.

    Raises: `Skipped`: no weights. `Overlap`: a model was trained on a problem of either.
    """
    record, rows = TrainingRecord.read(), list[Row]()
    test = unseen_problems(effort.of(30, TEST_PROBLEMS))
    record.refuse_overlap(test, TEST_SEED)
    development = development_problems(effort.of(30, DEVELOPMENT_PROBLEMS))
    record.refuse_overlap(development)
    for case, problems in ((CASE, test), (DEVELOPMENT, development)):
        outcomes = {name: await solved_by(case, name, problems) for name in SYSTEMS}
        rows += case_rows(case, outcomes)
    return [*rows, *sampled_rows(await sampled(test))]


async def solved_by(case: str, name: str, problems: Sequence[Problem]) -> list[Solved]:
    """What the system `name` makes of `problems`; said as soon as it is known."""
    system = SYSTEMS[name]
    async with served(system.kind) as model:
        solved = await solve_all(model, problems, system.settings, condition=system.condition)
    right = "".join("01"[one.right] for one in solved)
    print(json.dumps({"case": case, "system": name, "right": right}), file=sys.stderr, flush=True)
    return solved


def case_rows(case: str, outcomes: Outcomes) -> list[Row]:
    """Each system on the problems of `case`, and APR over its twin."""
    rows = [Row(case, "", "problems", len(next(iter(outcomes.values()))), "problems")]
    for name, solved in outcomes.items():
        rows += [*rows_of(case, name, solved), *at_windows(case, name, solved)]
    return [*rows, *compared(case, outcomes)]


@asynccontextmanager
async def served(kind: Kind) -> AsyncIterator[LocalModel]:
    """The trained model of `kind`. Raises: `Skipped` when there are no weights."""
    path = WEIGHTS / kind
    if not (path / "model.safetensors").is_file():
        raise Skipped(f"there are no weights in {path}: train them as docs/benchmarks says")
    model = LocalModel(path, LocalOptions(dtype="float32", threads=1, max_batch=2 * SIDE_BY_SIDE))
    try:
        yield model
    finally:
        await model.aclose()


def at_windows(case: str, system: str, solved: Sequence[Solved]) -> list[Row]:
    """The share that is solved without any call's context growing beyond a window."""
    return [
        Row(case, system, f"accuracy_within_{window}", 100 * mean(_right(solved, window)), "%")
        for window in WINDOWS
    ]


async def sampled(problems: Sequence[Problem]) -> list[list[Solved]]:
    """The twin several times, with other samples: what more tokens do for it."""
    warm = {"temperature": 0.7}
    async with served("sos") as model:
        return [await solve_all(model, problems, warm, seed) for seed in range(SAMPLES)]


def sampled_rows(drawn: Sequence[Sequence[Solved]]) -> list[Row]:
    """A problem is solved when any of its samples is right."""
    tries = [list(of_one) for of_one in zip(*drawn, strict=True)]
    right = [any(one.right for one in of_one) for of_one in tries]
    totals = [sum(one.counts.total_tokens for one in of_one) for of_one in tries]
    longest = [max(one.counts.critical_path_tokens for one in of_one) for of_one in tries]
    system = f"sos_any_of_{SAMPLES}"
    return [
        *share_rows(CASE, system, "accuracy", right),
        Row(CASE, system, "total_tokens", mean(totals), "tokens"),
        Row(CASE, system, "critical_path_tokens", mean(longest), "tokens"),
    ]


def compared(case: str, outcomes: Outcomes) -> list[Row]:
    """APR over its twin on the same problems, with 95 % intervals of the differences.

    Without conditions; in the conditions that were `CHOSEN`; and APR's chosen one against whichever
    twin is best on the test itself, which favours the twin. The last also at every window.
    """
    apr, sos = CHOSEN["apr"], CHOSEN["sos"]
    best = _best_twin(outcomes, WINDOWS[-1])
    reached = {name: [one.reached for one in outcomes[name]] for name in ("apr", "sos")}
    pairs: list[tuple[str, str, Sequence[bool], Sequence[bool]]] = [
        ("apr", "points_over_twin", _right(outcomes["apr"]), _right(outcomes["sos"])),
        ("apr", "reached_over_twin", reached["apr"], reached["sos"]),
        (apr, "points_over_twin", _right(outcomes[apr]), _right(outcomes[sos])),
        (apr, "points_over_best_twin", _right(outcomes[apr]), best),
    ]
    for window in WINDOWS[:-1]:
        ours, theirs = _right(outcomes[apr], window), _best_twin(outcomes, window)
        pairs.append((apr, f"points_over_best_twin_within_{window}", ours, theirs))
    return [row for pair in pairs for row in _over(case, *pair)]


def _right(solved: Sequence[Solved], window: int = WINDOWS[-1]) -> list[bool]:
    """Which problems are solved without any context growing beyond `window`."""
    return [one.right and one.longest <= window for one in solved]


def _best_twin(outcomes: Outcomes, window: int) -> list[bool]:
    """Which problems the twin solves in the condition in which it solves most of them."""
    twins = (name for name, system in SYSTEMS.items() if system.kind == "sos")
    return max((_right(outcomes[name], window) for name in twins), key=sum)


def _over(
    case: str, system: str, metric: str, ours: Sequence[bool], theirs: Sequence[bool]
) -> list[Row]:
    names = (metric, f"{metric}_low", f"{metric}_high")
    points = paired_difference(ours, theirs)
    return [
        Row(case, system, name, 100 * value, "points")
        for name, value in zip(names, points, strict=True)
    ]


def panel(axes: Axes, figures: Lookup) -> None:
    """Accuracy over the critical path, one point for each system."""
    for kind, marker in (("apr", "o"), ("sos", "s")):
        names = [name for name, system in SYSTEMS.items() if system.kind == kind]
        axes.scatter(
            [figures(CASE, name, "critical_path_tokens") or 0.0 for name in names],
            [figures(CASE, name, "accuracy") or 0.0 for name in names],
            marker=marker,
            label=kind,
        )
    axes.set_xlabel("critical path (tokens)")
    axes.set_ylabel("accuracy (%)")
    axes.set_title("Countdown, 3 numbers up to 20, window 288")
    axes.legend()
