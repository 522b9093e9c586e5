"""What trusting old keys does to predictions: each one beside the same without a cache.

All list operations together, in blocks of four slots. `largest_error` is the largest difference of
two logits, `flipped` the share of predictions whose likeliest token is another one. An exact cache
is at rounding; the aim is 1e-4.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from evals.diffusion.asking import answered, questions
from evals.diffusion.cache_error import Gauge
from evals.diffusion.lists import GREEDY, SAMPLED, answer_rows
from evals.diffusion.models import adapter as model
from evals.diffusion.summary import SIZES, TASKS
from evals.diffusion.systems import Option, System
from evals.engine.rows import Row
from evals.planning.effort import Effort, Skipped
from evals.reasoning.report import Target
from weft.core.errors import WeftError
from weft.decoding.diffusion.oracle.languages import LANGUAGES

CASE: Final = "all_lists"
_FOUR: Final[dict[str, Option]] = {"block": 4}
SYSTEMS: Final = (
    System("none", "threshold", _FOUR),
    *(
        System(name, name, _FOUR)
        for name in (
            "fastdllm_prefix",
            "fastdllm_dual",
            "freecache",
            "delayed",
            "interval",
            "vicinity",
        )
    ),
    System("prefix, every step", "fastdllm_prefix", {**_FOUR, "refresh": 1}),
    System("block_causal", "sdar", model="block"),
    System("block_causal, joined", "sdar", {"store": "joined"}, model="block"),
)
EXACT: Final = ("none", "prefix, every step", "block_causal", "block_causal, joined")
TARGETS: Final = tuple(Target(CASE, name, "largest_error", 1e-4, at_most=True) for name in EXACT)


def rows(quick: bool) -> list[dict[str, Any]]:
    """All rows. Raises: `Skipped` where there is no list model."""
    return [asdict(row) for row in _rows(Effort(quick))]


def _rows(effort: Effort) -> Iterator[Row]:
    for system in SYSTEMS:
        print(f"caches: {system.name}", file=sys.stderr, flush=True)
        try:
            yield from _measured(system, effort.of(10, 50))
        except (WeftError, Skipped) as error:
            yield Row(CASE, system.name, f"skipped: {error}", None, "")


def _measured(system: System, count: int) -> Iterator[Row]:
    gauge = Gauge(model(system.model))
    plugs = system.plugs(gauge.traits)
    found = []
    for task in TASKS:
        shaping = SAMPLED if LANGUAGES[task].free else GREEDY
        found += answered(gauge, plugs, questions(task, SIZES, count, seed=3), shaping)
    yield from answer_rows(CASE, system.name, found)
    yield Row(CASE, system.name, "largest_error", gauge.error.largest, "nats")
    yield Row(CASE, system.name, "flipped", gauge.error.flipped, "share")
