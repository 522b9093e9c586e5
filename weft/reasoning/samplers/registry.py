"""The samplers by name, with the settings they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from weft.core.errors import BuildError
from weft.core.suggestion import unknown
from weft.reasoning.samplers.adaptive import AdaptiveSampler
from weft.reasoning.samplers.deepconf import DeepConfSampler
from weft.reasoning.samplers.early_stopping import EarlyStoppingSampler
from weft.reasoning.samplers.fixed import FixedSampler
from weft.reasoning.samplers.parallel_probe import ParallelProbeSampler
from weft.reasoning.samplers.sampler import MakeSampler, Sampler
from weft.reasoning.samplers.saturation import SaturationSampler
from weft.reasoning.samplers.shortest import ShortestSampler

DEFAULTS: Final[Mapping[str, Any]] = {
    "samples": 0,
    "cancel_decided": None,
    "threshold": 0.95,
    "wave": 0,
    "first": 3,
    "eps": 0.02,
    "pilot": 4,
    "warmup": 0,
    "keep": 90.0,
    "window": 2048,
    "consensus": 0.95,
    "every": 500,
    "patience": 7,
    "stable": 40,
}
"""Settings of samplers. `samples`: how many at most (0: `width`, or 40 for asc, esc, saturating).

fixed: `cancel_decided` (None: where the majority is chosen). asc: `threshold`, `wave` (0: 8, or
`width` when that is less). esc: `wave`, its window. short: `first`, the m of short-m@k. saturating:
`pilot`, `eps`. deepconf: `warmup` (0: half the samples, 16 at most), `keep`, `window`, `consensus`.
probe: `every` so many tokens, `warmup` (0: 15 rounds), `patience`, `stable`.
"""

_IN_WAVES: Final = ("asc", "esc", "saturating")
_MOST: Final = 40

_Make = Callable[[int, int, Mapping[str, Any]], Sampler]

_SAMPLERS: Final[Mapping[str, _Make]] = {
    "fixed": lambda n, _, given: FixedSampler(n, bool(given["cancel_decided"])),
    "asc": lambda n, width, given: AdaptiveSampler(n, given["threshold"], _wave(n, width, given)),
    "esc": lambda n, width, given: EarlyStoppingSampler(n, _wave(n, width, given)),
    "short": lambda n, _, given: ShortestSampler(n, min(n, given["first"])),
    "saturating": lambda n, _, given: SaturationSampler(n, min(n, given["pilot"]), given["eps"]),
    "deepconf": lambda n, _, given: DeepConfSampler(
        n, given["warmup"] or _half(n), given["keep"], given["window"], given["consensus"]
    ),
    "probe": lambda n, _, given: ParallelProbeSampler(
        n, given["every"], given["warmup"] or 15, given["patience"], given["stable"]
    ),
}


def sampler_maker(name: str, width: int, settings: Mapping[str, Any]) -> MakeSampler:
    """The factory of the sampler `name`, for each question. `settings` has all of `DEFAULTS`.

    Raises: `BuildError` for an unknown sampler (it lists them), or a setting out of range.
    """
    make = _SAMPLERS.get(name)
    if make is None:
        raise unknown(BuildError, "sampler", name, _SAMPLERS)
    if settings["samples"] < 0:
        raise BuildError(f"samples must not be negative, got {settings['samples']}")
    n = settings["samples"] or (_MOST if name in _IN_WAVES else width)

    def made() -> Sampler:
        try:
            return make(n, width, settings)
        except ValueError as error:
            raise BuildError(f"sampler {name}: {error}") from error

    made()
    return made


def _half(n: int) -> int:
    return min(n, 16, max(2, n // 2))


def _wave(n: int, width: int, settings: Mapping[str, Any]) -> int:
    wave: int = settings["wave"] or min(8, width)
    return min(n, wave)
