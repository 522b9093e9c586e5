"""Items a second: by rules alone, and with tools that take 50 ms, several items at work at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from evals.engine.rows import Lookup
from evals.generate_calls import declared
from weft.agents.calls import GenerateOptions, generate, generate_checked
from weft.agents.calls.attempts import WaitingGates, rule_attempts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SECONDS: Final = 0.05
WIDTHS: Final = (1, 4, 16, 64)
_STYLES: Final = {"simple": 1.0, "multiple": 1.0}


def rows(quick: bool) -> list[dict[str, Any]]:
    """Items with one call each. `bound`: `width` calls of 50 ms at once and nothing else."""
    count = 40 if quick else 400
    begun = time.perf_counter()
    made = sum(refusal is None for _, refusal in generate(declared.TOOLS, _options(count)))
    found = [_row("rules", "rules", "items_s", made / (time.perf_counter() - begun), "items/s")]
    for width in WIDTHS:
        few = min(count, 10 * width + 20)
        took = asyncio.run(_timed(few, width))
        rate, bound = few / took, width / SECONDS
        found += [
            _row(f"width_{width}", "weft", "items_s", rate, "items/s"),
            _row(f"width_{width}", "bound", "items_s", bound, "items/s"),
            _row(f"width_{width}", "weft", "share_of_bound", rate / bound, "share"),
        ]
    return found


def panel(axes: Axes, figures: Lookup) -> None:
    """Items a second over the width."""
    for system in ("weft", "bound"):
        rates: Sequence[float] = [
            figures(f"width_{width}", system, "items_s") or 0.0 for width in WIDTHS
        ]
        axes.plot(WIDTHS, rates, marker="o", label=system)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("items at work at once")
    axes.set_ylabel("items a second, calls of 50 ms")
    axes.legend(frameon=False)


def _options(count: int) -> GenerateOptions:
    return GenerateOptions(count, _STYLES, seed=2, per_skeleton=50)


async def _timed(count: int, width: int) -> float:
    """Seconds for `count` accepted items."""
    gates = WaitingGates(declared.toolbox(seconds=SECONDS))
    options = _options(count)
    begun = time.perf_counter()
    async for _ in generate_checked(rule_attempts(declared.TOOLS, options, gates), options, width):
        pass
    return time.perf_counter() - begun


def _row(case: str, system: str, metric: str, value: float, unit: str) -> dict[str, Any]:
    return {"case": case, "system": system, "metric": metric, "value": value, "unit": unit}
