"""APR against its sequential twin: two small models, equally trained, in equal windows.

The weights in `countdown/weights` are trained by `python -m evals.reasoning.countdown.train`. Both
run through weft's local engine and runtime, greedily, and one strict verifier judges both.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, Final

from evals.engine.rows import Lookup, Row
from evals.planning.effort import Effort, Skipped
from evals.reasoning.countdown.measuring import Solved, rows_of, solve_all
from evals.reasoning.countdown.problem import Problem
from evals.reasoning.countdown.sequences import Kind, token_budget, unseen_problems
from evals.reasoning.report import Target
from weft.serving.local.model import LocalModel
from weft.serving.local.options import LocalOptions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WEIGHTS: Final = Path(__file__).parent / "countdown" / "weights"
CASE: Final = "countdown3_small_288"
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
    **{f"apr_children_{n}": System("apr", settings={"children": n}) for n in (2, 3, 4, 5)},
    "sos": System("sos"),
    **{f"sos_budget_{n}": System("sos", token_budget(n)) for n in (128, 192, 256, 320)},
}
TARGETS: Final = (
    Target(CASE, "apr", "points_over_twin", 0.0),
    Target(CASE, "apr", "points_over_best_twin", 0.0),
    Target(CASE, "apr", "reached_over_twin", 0.0),
)


async def run(effort: Effort) -> list[Row]:
    """100 problems that nobody was trained on, 30 in a hurry. Raises: `Skipped`: no weights."""
    problems = unseen_problems(effort.of(30, 100))
    rows: list[Row] = []
    for name, system in SYSTEMS.items():
        async with served(system.kind) as model:
            solved = await solve_all(model, problems, system.settings, condition=system.condition)
        rows += rows_of(CASE, name, solved) + at_windows(name, solved)
    rows += await sampled(problems)
    return rows + compared(Lookup(rows))


@asynccontextmanager
async def served(kind: Kind) -> AsyncIterator[LocalModel]:
    """The trained model of `kind`. Raises: `Skipped` when there are no weights."""
    path = WEIGHTS / kind
    if not (path / "model.safetensors").is_file():
        raise Skipped(f"there are no weights in {path}: train them as docs/benchmarks says")
    model = LocalModel(path, LocalOptions(dtype="float32", threads=1, max_batch=64))
    try:
        yield model
    finally:
        await model.aclose()


def at_windows(system: str, solved: Sequence[Solved]) -> list[Row]:
    """The share that is solved without any call's context growing beyond a window."""
    return [
        Row(
            CASE,
            system,
            f"accuracy_within_{window}",
            100 * mean(one.right and one.longest <= window for one in solved),
            "%",
        )
        for window in WINDOWS
    ]


async def sampled(problems: Sequence[Problem]) -> list[Row]:
    """The twin with several samples, solved when any of them is: what more tokens do for it."""
    warm = {"temperature": 0.7}
    async with served("sos") as model:
        drawn = [await solve_all(model, problems, warm, seed) for seed in range(SAMPLES)]
    tries = [list(of_one) for of_one in zip(*drawn, strict=True)]
    right = [any(one.right for one in of_one) for of_one in tries]
    totals = [sum(one.counts.total_tokens for one in of_one) for of_one in tries]
    longest = [max(one.counts.critical_path_tokens for one in of_one) for of_one in tries]
    system = f"sos_any_of_{SAMPLES}"
    return [
        Row(CASE, system, "accuracy", 100 * mean(right), "%"),
        Row(CASE, system, "total_tokens", mean(totals), "tokens"),
        Row(CASE, system, "critical_path_tokens", mean(longest), "tokens"),
    ]


def compared(figures: Lookup) -> list[Row]:
    """APR at its best over the twin: without conditions, and each in its best condition."""
    best = {
        kind: max(
            figures(CASE, name, "accuracy") or 0.0
            for name, system in SYSTEMS.items()
            if system.kind == kind
        )
        for kind in ("apr", "sos")
    }
    plain = (figures(CASE, "apr", "accuracy") or 0.0) - (figures(CASE, "sos", "accuracy") or 0.0)
    reached = (figures(CASE, "apr", "reached") or 0.0) - (figures(CASE, "sos", "reached") or 0.0)
    return [
        Row(CASE, "apr", "points_over_twin", plain, "points"),
        Row(CASE, "apr", "reached_over_twin", reached, "points"),
        Row(CASE, "apr", "points_over_best_twin", best["apr"] - best["sos"], "points"),
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
