"""How many slots at once: closed forms, exact marginals, and the trained model, in one picture.

Slots in random order, some of them at each step, drawn at temperature 1: what theory says
(`closed_form`), what the oracle makes of it (`oracle`), and the trained model (`trained`). The
first two apart would be a fault of the loop; the last two, what the model did not learn. `z` is how
many standard errors a share is away from theory. A canvas has as many slots as the answer.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from evals.diffusion.asking import answered, questions, room
from evals.diffusion.closed_forms import replace_in_steps, shuffle_in_steps
from evals.diffusion.models import adapter as model
from evals.engine.rows import Lookup, Row
from evals.planning.effort import Effort
from evals.reasoning.report import Target
from weft.decoding.diffusion.adapter import ModelAdapter
from weft.decoding.diffusion.catalogue import decoder_config
from weft.decoding.diffusion.oracle.adapter import OracleAdapter
from weft.decoding.diffusion.oracle.closed_forms import one_step
from weft.decoding.diffusion.oracle.languages import DETERMINISTIC
from weft.decoding.sampling import SamplingParams

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FREE: Final = ("shuffle", "replace_random", "insert_random", "remove_random")
CERTAIN: Final = tuple(name for name in DETERMINISTIC if name != "latin_square")
SAMPLED, GREEDY = SamplingParams(1.0), SamplingParams(0.0)
N: Final = 6
TARGETS: Final = (
    *(Target(f"list_{name}_in_1", "trained", "distance", 3.0, at_most=True) for name in FREE),
    *(Target(f"list_{name}_in_1", "trained", "validity", 0.99) for name in CERTAIN),
)


def rows(quick: bool) -> list[dict[str, Any]]:
    """All rows. Raises: `Skipped` where there is no list model."""
    return [asdict(row) for row in _rows(Effort(quick))]


def _rows(effort: Effort) -> Iterator[Row]:
    players: dict[str, ModelAdapter] = {"oracle": OracleAdapter(), "trained": model("full")}
    for task in (*FREE, *CERTAIN):
        print(f"one_step: {task}", file=sys.stderr, flush=True)
        for steps in (1, 2, 3, N) if task in ("shuffle", "replace_random") else (1,):
            case = f"list_{task}_in_{steps}"
            theory = _theory(task, steps)
            yield Row(case, "closed_form", "validity", theory, "share")
            for name, adapter in players.items():
                count = effort.of(200, 2000)
                if name == "oracle" and task in CERTAIN:
                    count = effort.of(20, 50)
                yield from _played(case, name, adapter, task, steps, theory, count)


def _theory(task: str, steps: int) -> float:
    sizes = [N // steps] * steps
    if task == "shuffle":
        return shuffle_in_steps(sizes)
    if task == "replace_random":
        return replace_in_steps(sizes)
    return one_step(task, N)


def _played(
    case: str,
    system: str,
    adapter: ModelAdapter,
    task: str,
    steps: int,
    theory: float,
    count: int,
) -> Iterator[Row]:
    shaping = GREEDY if task in CERTAIN else SAMPLED
    asked = questions(task, (N,), count, seed=1)
    slots = room(asked[0], ends=False)
    plugs = decoder_config("random", adapter.traits, {"count": slots // steps})
    answers = answered(adapter, plugs, asked, shaping, ends=False)
    share = sum(answer.valid for answer in answers) / count
    error = math.sqrt(max(theory * (1 - theory), 1e-12) / count)
    yield Row(case, system, "validity", share, "share")
    yield Row(case, system, "answers", count, "answers")
    if 0 < theory < 1:
        yield Row(case, system, "z", (share - theory) / error, "standard errors")
        yield Row(case, system, "distance", abs(share - theory) / error, "standard errors")


def panel(axes: Axes, figures: Lookup) -> None:
    """Validity over slots a step, a line for each of the three, for two operations."""
    for task, colour in (("shuffle", "tab:blue"), ("replace_random", "tab:orange")):
        for system, style in (("closed_form", "-"), ("oracle", "o"), ("trained", "x")):
            points = [
                (N / steps, figures(f"list_{task}_in_{steps}", system, "validity"))
                for steps in (N, 3, 2, 1)
            ]
            known = [(at, value) for at, value in points if value is not None]
            if known:
                axes.plot(*zip(*known, strict=True), style, color=colour, label=f"{task}, {system}")
    axes.set_xlabel("slots a step")
    axes.set_ylabel("valid answers")
    axes.set_title(f"{N} items in random order")
    if axes.lines:
        axes.legend(fontsize=7)
