"""How long one question takes: every decoder in turn, each question alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from statistics import median

from evals.diffusion import twin
from evals.diffusion.asking import Answered, timed
from evals.diffusion.models import adapter as model
from evals.diffusion.models import twin as twin_network
from evals.diffusion.systems import SEQUENTIAL, System
from evals.engine.rows import Row
from evals.planning.effort import Skipped
from weft.core.errors import WeftError
from weft.decoding.diffusion.oracle.language import ListQuestion
from weft.decoding.sampling import SamplingParams

Timed = Callable[[ListQuestion, SamplingParams, int], Answered]


def time_rows(
    case: str, systems: Iterable[System], asked: Sequence[ListQuestion], shaping: SamplingParams
) -> Iterator[Row]:
    """`wall_ratio` is the time of one token a pass over the system's, `wall_to_twin` that of the
    autoregressive twin: medians over the questions.
    """
    seconds = _seconds(systems, asked, shaping)
    for name, taken in seconds.items():
        for metric, other in (("wall_ratio", SEQUENTIAL), ("wall_to_twin", twin.NAME)):
            if taken and other in seconds:
                pairs = zip(seconds[other], taken, strict=True)
                yield Row(case, name, metric, median(a / b for a, b in pairs), "x")


def _seconds(
    systems: Iterable[System], asked: Sequence[ListQuestion], shaping: SamplingParams
) -> dict[str, list[float]]:
    """By system, question by question; nothing of those that cannot run here."""
    ready: dict[str, Timed] = {}
    for system in systems:
        with suppress(WeftError, Skipped):
            adapter = model(system.model)
            ready[system.name] = partial(timed, adapter, system.plugs(adapter.traits))
    with suppress(Skipped):
        ready[twin.NAME] = partial(twin.timed, twin_network())
    seconds: dict[str, list[float]] = {name: [] for name in ready}
    for number, question in enumerate(asked):
        for name in list(seconds):
            try:
                seconds[name].append(ready[name](question, shaping, number).seconds)
            except WeftError:  # of one that fails, no time is told
                del seconds[name]
    return seconds
