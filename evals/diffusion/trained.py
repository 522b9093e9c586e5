"""What training for speed is worth: Learn2PD's filter and dParallel's student, beside thresholds.

Over all list operations together. `passes_saved` compares a trained one with the threshold on the
plain model that needs the fewest passes while its answers are at least as often valid: more than 1
means fewer passes at equal validity.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from evals.diffusion.asking import Answered, answered, questions
from evals.diffusion.lists import GREEDY, SAMPLED, answer_rows
from evals.diffusion.models import adapter as model
from evals.diffusion.summary import SIZES, TASKS, place
from evals.diffusion.systems import SEQUENTIAL, System, systems
from evals.engine.rows import Lookup, Row
from evals.planning.effort import Effort
from evals.reasoning.report import Target
from weft.core.errors import WeftError
from weft.decoding.diffusion.oracle.languages import LANGUAGES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CASE: Final = "all_lists"
TRAINED: Final = ("learn2pd", "dparallel")
THRESHOLDS: Final = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
TARGETS: Final = tuple(Target(CASE, name, "passes_saved", 1.0) for name in TRAINED)


def rows(quick: bool) -> list[dict[str, Any]]:
    """All rows. Raises: `Skipped` where there is no list model."""
    return [asdict(row) for row in _rows(Effort(quick))]


def _rows(effort: Effort) -> Iterator[Row]:
    base = [System(f"threshold_{t}", "threshold", {"threshold": t}) for t in THRESHOLDS]
    wanted = [one for one in systems() if one.name in (SEQUENTIAL, *TRAINED)]
    found: dict[str, list[Answered]] = {}
    for system in (*base, *wanted):
        print(f"trained: {system.name}", file=sys.stderr, flush=True)
        try:
            found[system.name] = _answers(system, effort.of(20, 100))
        except WeftError as error:
            yield Row(CASE, system.name, f"skipped: {error}", None, "")
            continue
        yield from answer_rows(CASE, system.name, found[system.name])
    for name in TRAINED:
        if name in found:
            yield from _saved(name, found)


def _answers(system: System, count: int) -> list[Answered]:
    adapter = model(system.model)
    plugs = system.plugs(adapter.traits)
    found = []
    for task in TASKS:
        shaping = SAMPLED if LANGUAGES[task].free else GREEDY
        found += answered(adapter, plugs, questions(task, SIZES, count, seed=2), shaping)
    return found


def _saved(name: str, found: Mapping[str, list[Answered]]) -> Iterator[Row]:
    valid = {system: sum(one.valid for one in answers) for system, answers in found.items()}
    passes = {
        system: sum(one.counters.forwards for one in answers) for system, answers in found.items()
    }
    as_good = [system for system in found if system not in TRAINED and valid[system] >= valid[name]]
    if as_good:
        fewest = min(as_good, key=passes.__getitem__)
        yield Row(CASE, name, "passes_saved", passes[fewest] / passes[name], f"x of {fewest}")
    else:
        yield Row(CASE, name, "skipped: no threshold answers as validly", None, "")


def panel(axes: Axes, figures: Lookup) -> None:
    """Validity over passes an answer: thresholds on the plain model, and what was trained."""

    def at(system: str) -> tuple[float, float]:
        passes = figures(CASE, system, "forwards")
        return place(passes), place(figures(CASE, system, "validity"))

    xs, ys = zip(*(at(f"threshold_{t}") for t in THRESHOLDS), strict=True)
    axes.plot(xs, ys, "o-", label=f"threshold {THRESHOLDS[0]} to {THRESHOLDS[-1]}")
    for system, marker in ((SEQUENTIAL, "s"), *zip(TRAINED, "hX", strict=True)):
        axes.plot(*at(system), marker, ms=9, label=system)
    axes.set_xlabel("passes an answer")
    axes.set_ylabel("valid answers")
    axes.set_title("all operations together")
    axes.legend(fontsize=7)
